/* cgroup_io.h - how fast a group may read from disks and write to them. */
#pragma once
#include "runtime/runtime.h"

struct cgroup;
struct cgroup_parent;

#define CGROUP_WHY_MAX 256

/* Whether groups below `where` can have this limit; if not, `why` says what is missing. */
bool cgroup_can_limit_io(
        const struct cgroup_parent *where, enum limit limit, char why[static CGROUP_WHY_MAX]);

/*
 * Writes the limits of a new group for every disk of the machine: each disk on its own, as the
 * kernel counts. 0 is none.
 */
int cgroup_set_io(const struct cgroup *group, const struct sandbox_limits *limits,
        struct carrel_error *err);

/* The same for those in `which`, while processes run in it: all, or after a failure none. */
int cgroup_update_io(const struct cgroup *group, const struct sandbox_limits *limits,
        unsigned which, struct carrel_error *err);
