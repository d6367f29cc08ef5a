/* proc_tree.h - the descendants of a process, from /proc. */
#pragma once
#include <stddef.h>
#include <sys/types.h>

/*
 * Lists the descendants of `top` without `top` itself, and returns their number. A process that
 * exits meanwhile is skipped. A process that is reparented meanwhile may be missing or listed
 * twice, because the kernel provides no snapshot; a caller that must miss none repeats the
 * call.
 *
 * -E2BIG: more than `max`. -ENOENT: `top` has exited, or the kernel does not list children
 * (CONFIG_PROC_CHILDREN).
 */
int proc_tree_list(pid_t top, pid_t *pids, size_t max);

/* The children in an open /proc/PID/task/TID/children. -E2BIG: `pids` has the first `max`. */
int proc_tree_children(int file, pid_t *pids, size_t max);
