/*
 * freezer.h - a group in which the programs of a sandbox are frozen.
 *
 * init is never in it: it must keep time and kill the programs. The group is created when the
 * sandbox is paused for the first time, and the programs are moved into it while it is frozen
 * already; their children start in it.
 *
 * v1: the group INODE-SLOT of the freezer hierarchy, which exists beside the sandbox's other
 * groups and not longer than they do, so that a sweep finds it. A frozen process does not even
 * die there: a killer must thaw. v2: a group below the sandbox's own. A frozen process dies.
 */
#pragma once
#include <stdbool.h>
#include <sys/types.h>

struct carrel_error;
struct cgroup;

#define FREEZER_BELOW "paused" /* v2: its name below the sandbox's group */

/* Creates the group if necessary. -ENOTSUP: it is not possible here. */
int freezer_make(struct cgroup *group, struct carrel_error *err);

/* v1: the file to which a killer writes WIRE_THAW. v2: -ENOTSUP, not necessary. */
int freezer_open(const struct cgroup *group);

/*
 * Freezes every process of the sandbox except init. When it returns 0 they are frozen. After a
 * failure they run. -EBUSY: one is in the kernel and does not stop.
 */
int freezer_freeze(const struct cgroup *group, pid_t init, struct carrel_error *err);

/* Thaws them. Safe if nothing was created. */
int freezer_thaw(const struct cgroup *group);

/* Removes the group, which has no process any more, and closes its descriptors. */
void freezer_remove(struct cgroup *group);

/*
 * The same for what a crash left of the sandbox's group `name` (v2: below `parent`), with
 * everything in it. Before the sandbox's other groups: else their processes cannot die.
 */
int freezer_sweep(int version, int parent, const char *name);

/* v1: calls `visit` with the name of each group, until it returns false. */
void freezer_each(bool (*visit)(void *target, const char *name), void *target);
