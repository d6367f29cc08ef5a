/* cgroup_limits.h - writes limits to a group's files. */
#pragma once
#include <stdint.h>

struct carrel_error;
struct cgroup;
struct sandbox_limits;

/* Writes all limits of a new group. */
int cgroup_set_limits(const struct cgroup *group, const struct sandbox_limits *limits,
        struct carrel_error *err);

/*
 * Writes those in `which` (LIMIT_BITs) while processes run in it: all, or after a failure none.
 * -EBUSY: more memory is in use than the new limit, and cannot be reclaimed. No process is
 * killed.
 */
int cgroup_update_limits(const struct cgroup *group, const struct sandbox_limits *limits,
        unsigned which, struct carrel_error *err);
