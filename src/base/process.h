/* process.h - signal settings around clone and exec, and the command line that others see. */
#pragma once
#include <signal.h>
#include <sys/types.h>

/*
 * Sets every signal to its default action, including the C library's internal ones and those
 * that the caller inherited as ignored. Allocates nothing: safe between clone and exec.
 */
void signals_reset(void);

/*
 * Blocks all signals of this thread around a clone, so that no handler of the caller runs in
 * the child, which may share our memory. Preserves errno.
 */
void signals_block(sigset_t *before);
void signals_unblock(const sigset_t *before);

/*
 * The real, effective and saved ids of this thread, and its supplementary groups. The functions
 * of the C library change those of every thread that they know of; in a child that is a copy of
 * a process with many threads they wait for threads that do not exist. -1 with errno.
 */
int process_drop_groups(void);
int process_set_gid(gid_t gid);
int process_set_uid(uid_t uid);

/*
 * The title is the command line that other users see. Both functions set it to `name` and
 * overwrite the memory in which exec put the arguments, which every user can read, and the
 * initial environment. So the caller must have copies of what it still needs of both; `environ`
 * itself is fine. They return 0 or a negative errno.
 */
int title_set(const char *name); /* allocates nothing */

/*
 * The same, and the name stays visible after the stack is released (trim.h), if the kernel can.
 */
int title_move(const char *name);
