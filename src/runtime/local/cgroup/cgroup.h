/*
 * cgroup.h - limits for a whole sandbox, on cgroup v1 and v2.
 *
 * A sandbox has one group below a parent of ours: /sys/fs/cgroup/carrel (v2, root),
 * /sys/fs/cgroup/<controller>/carrel (v1, root), or a carrel group in the subtree that was
 * delegated to us (v2, rootless).
 */
#pragma once
#include "base/auto.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct carrel_error;
struct sandbox_limits;
struct sandbox_usage;

/* Every group has those before IO; a group without a limit for disks does without it. */
enum cgroup_controller {
    CGROUP_MEMORY,
    CGROUP_PIDS,
    CGROUP_CPU,
    CGROUP_IO,
    CGROUP_CONTROLLERS,
};

/* Where groups can be created. */
struct cgroup_parent {
    enum { CGROUP_NONE, CGROUP_V1, CGROUP_V2 } version;
    char parent[512]; /* v2: the parent directory of the carrel group */
    char why[256];    /* NONE: what is missing and how to get it */
};

/* Inspects the machine without changing anything. */
void cgroup_find(struct cgroup_parent *where);

/* Whether the controllers that are listed in a file of the group `dir` include this one. */
bool cgroup_lists(const char *dir, const char *file, const char *controller);

struct cgroup {
    int version;
    char name[64];
    int freezer; /* the parent of the freezer's group; -1: not needed so far */
    int parent[CGROUP_CONTROLLERS]; /* the carrel group; -1: none. v2 uses the first */
};
#define CGROUP_INIT                                                                            \
    (struct cgroup)                                                                            \
    {                                                                                          \
        .freezer = -1, .parent = { -1, -1, -1, -1 }                                            \
    }

/*
 * Creates the group `name` with all limits. An existing group was left by a crash (the caller
 * holds the lock on the name): its processes are killed and it is created anew.
 */
int cgroup_create(struct cgroup *group, const struct cgroup_parent *where, const char *name,
        const struct sandbox_limits *limits, struct carrel_error *err);

/* v1: files to which the child writes "0" to join; returns how many. v2: none (see cgroup_fd).
 */
int cgroup_open_joins(
        const struct cgroup *group, int fds[CGROUP_CONTROLLERS], struct carrel_error *err);

/* v2: opens the group for CLONE_INTO_CGROUP. v1: -ENOTSUP, and see above. */
int cgroup_open(const struct cgroup *group);

void cgroup_usage(const struct cgroup *group, struct sandbox_usage *usage);

/* Only the counts of OOM kills and refused forks. */
void cgroup_refusals(const struct cgroup *group, struct sandbox_usage *usage);

/* Of everything that was ever in the group; USAGE_UNKNOWN: not counted here. */
uint64_t cgroup_cpu_ms(const struct cgroup *group);

/* Lists the processes in the group, frozen or not. Returns how many; -E2BIG: more than `max`.
 */
int cgroup_members(
        const struct cgroup *group, pid_t *pids, size_t max, struct carrel_error *err);

/*
 * Removes the group, which must have no process any more, and closes everything. A group that
 * is still busy is left for a later sweep.
 */
void cgroup_remove(struct cgroup *group);

/* Kills what is in the stale group `name` and removes it. A negative errno: it still exists. */
int cgroup_sweep(const struct cgroup_parent *where, const char *name);

/* Calls `visit` with the name of each sandbox's group until it returns false. */
void cgroup_each(const struct cgroup_parent *where,
        bool (*visit)(void *target, const char *name), void *target);

/*
 * The same for the hierarchy whose groups are removed first. A group that exists only there was
 * left by a sweep that did not know it: of an older carrel, or of an administrator.
 */
void cgroup_each_lost(const struct cgroup_parent *where,
        bool (*visit)(void *target, const char *name), void *target);

/*
 * One group of a hierarchy: a directory `name` below `parent`. The name may contain a slash:
 * names here are ours, never a program's.
 */

/* Lists its processes, not those of groups below. Returns how many; -E2BIG: more than `max`. */
int group_list(int parent, const char *name, pid_t *pids, size_t max, struct carrel_error *err);

/* Calls `visit` with the name of each group in `parent`, which is closed, until it is false. */
void group_each(int parent, bool (*visit)(void *target, const char *name), void *target);

/* Removes it; waits if it is busy for a moment. A missing group is fine. */
int group_remove(int parent, const char *name);

/* Kills what is in it, which has no owner any more, and removes it. */
int group_sweep(int parent, const char *name);
