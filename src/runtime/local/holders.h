/* holders.h - which limits are in whose hands, given where cgroups can be made. */
#pragma once
#include "runtime/runtime.h"

struct carrel_error;
struct cgroup_parent;
struct plan;

/* Fills in held_by. Refuses (-ENOTSUP, -EINVAL) a demanded limit that nothing here can hold. */
int holders_choose(const struct sandbox_spec *spec, const struct cgroup_parent *place,
        enum limit_holder held_by[LIMIT_COUNT], struct carrel_error *err);

/* Adds the rlimits that stand in for a cgroup. */
void holders_substitute(const struct sandbox_limits *limits,
        const enum limit_holder held_by[LIMIT_COUNT], struct plan *plan);

/* With a layer on disk the private space holds only what is still in memory: says so. */
void holders_of_disk(const struct sandbox_limits *limits, const struct plan *plan,
        enum limit_holder held_by[LIMIT_COUNT]);
