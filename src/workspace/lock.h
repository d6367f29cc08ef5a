/* lock.h - who has a workspace. */
#pragma once

struct carrel_error;
struct workspace;

/* Takes the flock of the directory `dir`, whose `lock` file must exist. Returns the descriptor;
 * -EWOULDBLOCK: another process holds it. */
int lock_try(int dir);

/* "carrel (process 1234)", or "another process" where the kernel does not tell. */
void lock_describe_holder(int dir, char *text, unsigned long size);
