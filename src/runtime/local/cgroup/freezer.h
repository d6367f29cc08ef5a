/*
 * freezer.h - a group in which the programs of a sandbox stand still.
 *
 * init is never in it: it must keep the time and end the programs. The group is made when the
 * sandbox is paused for the first time, and the programs are moved into it while it is frozen
 * already; what they start later is born in it.
 *
 * v1: the group INODE-SLOT of the freezer hierarchy, which is there beside the sandbox's others
 * and not after them, so that a sweep finds it. A frozen process does not even die there: who
 * kills must thaw. v2: a group below the sandbox's own. A frozen process dies.
 */
#pragma once
#include <stdbool.h>
#include <sys/types.h>

struct carrel_error;
struct cgroup;

#define FREEZER_BELOW "paused" /* v2: its name below the sandbox's group */

/* Makes the group if need be. -ENOTSUP: there can be none here. */
int freezer_make(struct cgroup *group, struct carrel_error *err);

/* v1: the file to which whoever kills writes FREEZER_THAW. v2: -ENOTSUP, nobody has to. */
int freezer_open(const struct cgroup *group);
#define FREEZER_THAW "THAWED"

/*
 * Freezes every process of the sandbox but init. When it returns 0 they stand still. After a
 * failure they run. -EBUSY: one is in the kernel and does not come out.
 */
int freezer_freeze(const struct cgroup *group, pid_t init, struct carrel_error *err);

/* Lets them go on. Safe where nothing was made. */
int freezer_thaw(const struct cgroup *group);

/* Removes the group, which holds no process any more, and closes what belongs to it. */
void freezer_remove(struct cgroup *group);

/*
 * The same for what a crash left of the sandbox's group `name` (v2: below `parent`), with
 * everything in it. Before the sandbox's other groups: else what is in them cannot die.
 */
int freezer_sweep(int version, int parent, const char *name);

/* v1: calls `visit` with the name of each group, until it returns false. */
void freezer_each(bool (*visit)(void *target, const char *name), void *target);
