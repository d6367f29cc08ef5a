/* proc_tree.h - the processes that descend from one, as /proc shows them. */
#pragma once
#include <stddef.h>
#include <sys/types.h>

/*
 * Lists the descendants of `top`, itself not among them, and returns how many there are. What
 * ends meanwhile is passed over. What loses its parent meanwhile may be missing or there twice:
 * the kernel gives no picture of one moment, so who must miss nothing asks again.
 *
 * -E2BIG: more than `max`. -ENOENT: `top` is gone, or the kernel does not list children
 * (CONFIG_PROC_CHILDREN).
 */
int proc_tree_list(pid_t top, pid_t *pids, size_t max);
