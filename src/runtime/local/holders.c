/* holders.c - cgroup, rlimit, file system, or a refusal. */
#include "runtime/local/holders.h"
#include "base/err.h"
#include "runtime/local/cgroup/cgroup.h"
#include "runtime/local/plan.h"
#include <errno.h>
#include <sys/resource.h>

static int check_files(const struct sandbox_limits *limits, struct carrel_error *err)
{
    struct rlimit hard;

    if (getrlimit(RLIMIT_NOFILE, &hard) < 0)
        return err_set_errno(err, -errno, "getrlimit");
    if (limits->value[LIMIT_FILES] > hard.rlim_max)
        return err_set(err, -EINVAL,
                "the files limit %ju is above this process's own hard limit %ju (ulimit -Hn)",
                (uintmax_t)limits->value[LIMIT_FILES], (uintmax_t)hard.rlim_max);
    return 0;
}

static int refuse(enum limit limit, const struct cgroup_parent *place, struct carrel_error *err)
{
    return err_set(err, -ENOTSUP,
            "the %s limit cannot be held here: %s; or accept less with --best-effort %s",
            limit_name(limit), place->why, limit_name(limit));
}

int holders_choose(const struct sandbox_spec *spec, const struct cgroup_parent *place,
        enum limit_holder held_by[LIMIT_COUNT], struct carrel_error *err)
{
    static const enum limit by_cgroup[] = { LIMIT_MEMORY, LIMIT_PIDS, LIMIT_CPU };
    const struct sandbox_limits *limits = &spec->limits;
    const unsigned demanded = limits->demanded & ~limits->best_effort;

    held_by[LIMIT_DISK] = HELD_BY_FILESYSTEM;
    held_by[LIMIT_FILES] = HELD_BY_RLIMIT;
    for (size_t i = 0; i < ARRAY_LEN(by_cgroup); i++) {
        enum limit limit = by_cgroup[i];
        if (place->version != CGROUP_NONE)
            held_by[limit] = HELD_BY_CGROUP;
        else if (demanded & LIMIT_BIT(limit))
            return refuse(limit, place, err);
        else
            held_by[limit] = limit == LIMIT_CPU ? HELD_BY_NOTHING : HELD_BY_RLIMIT;
    }
    return check_files(limits, err);
}

/* Without a cgroup: per process for memory, per user namespace (so per sandbox) for pids. */
void holders_substitute(const struct sandbox_limits *limits,
        const enum limit_holder held_by[LIMIT_COUNT], struct plan *plan)
{
    if (held_by[LIMIT_MEMORY] == HELD_BY_RLIMIT)
        plan_add_rlimit(plan, RLIMIT_DATA, limits->value[LIMIT_MEMORY]);
    if (held_by[LIMIT_PIDS] == HELD_BY_RLIMIT)
        plan_add_rlimit(plan, RLIMIT_NPROC, limits->value[LIMIT_PIDS] + 1); /* init */
}

/*
 * What a program writes to a layer is on the host's file system, which counts for nobody: it
 * holds each file to what was demanded, and the owner of the layer watches the sum.
 */
void holders_of_disk(const struct sandbox_limits *limits, const struct plan *plan,
        enum limit_holder held_by[LIMIT_COUNT])
{
    if (plan->disk_use != DISK_IS_UNUSED && !plan->disk.is_in_memory)
        held_by[LIMIT_DISK] =
                limits->demanded & LIMIT_BIT(LIMIT_DISK) ? HELD_BY_RLIMIT : HELD_BY_NOTHING;
}
