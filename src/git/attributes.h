/* attributes.h - the files of a work tree that git reads for its own purposes. */
#pragma once
#include <stdbool.h>

struct carrel_error;
struct repo;

/* Whether git would read `name` in the open directory `dir`, and wait there: a FIFO or a
 * device, or a link to one. An earlier program may have made it. */
bool attributes_block(int dir, const char *name);

/*
 * -EINVAL if there is such a file in the user's work tree `top`, in a directory of a file that
 * git tracks: git on the host would wait for the other end of a FIFO.
 */
int attributes_check(const struct repo *repo, int top, struct carrel_error *err);
