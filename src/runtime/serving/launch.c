/* launch.c - what a program must not inherit from init. */
#include "runtime/serving/launch.h"
#include "base/auto.h"
#include "base/process.h"
#include "runtime/serving/caps.h"
#include "runtime/serving/rights.h"
#include "runtime/serving/seccomp.h"
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

static int become_program_user(const struct launch *launch)
{
    if (!launch->rights->has_range)
        return 0; /* init is that user already, and may not call setgroups */
    if (process_drop_groups() < 0 || process_set_gid(launch->gid) < 0 ||
            process_set_uid(launch->uid) < 0)
        return -errno;
    return 0;
}

/* The user first: changing it needs init's capabilities. */
static int drop(struct spawn *spawn)
{
    int r = become_program_user(container_of(spawn, struct launch, base));

    (void)umask(022);
    return r < 0 ? r : caps_drop_all();
}

static int filter_calls(struct spawn *spawn, struct carrel_error *err)
{
    (void)spawn;
    return seccomp_install_rest(err); /* the first part is on init */
}

pid_t launch_process(struct launch *launch, struct carrel_error *err)
{
    launch->base.rlimits = launch->rights->rlimits;
    launch->base.n_rlimits = launch->rights->n_rlimits;
    launch->base.drop = drop;
    launch->base.seal = filter_calls;
    return spawn_program(&launch->base, err);
}
