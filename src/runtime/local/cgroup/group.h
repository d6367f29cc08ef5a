/*
 * group.h - one group of a cgroup hierarchy: a directory `name` below `parent`.
 *
 * The name may contain a slash: names here are ours, never a program's.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct carrel_error;

/* Lists its processes, not those of groups below. Returns how many; -E2BIG: more than `max`. */
int group_list(int parent, const char *name, pid_t *pids, size_t max, struct carrel_error *err);

/* Calls `visit` with the name of each group in `parent`, which is closed, until it is false. */
void group_each(int parent, bool (*visit)(void *target, const char *name), void *target);

/* Removes it; waits if it is busy for a moment. A missing group is fine. */
int group_remove(int parent, const char *name);

/* Kills what is in it, which has no owner any more, and removes it. */
int group_sweep(int parent, const char *name);
