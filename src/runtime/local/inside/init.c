/*
 * init.c - pid 1 of a kernel sandbox: the setup of its namespaces, then the server.
 *
 * It is a fork of the caller without exec, so it allocates nothing and takes no locks.
 */
#include "runtime/local/inside/init.h"
#include "base/err.h"
#include "runtime/local/inside/setup.h"
#include "runtime/local/plan.h"
#include "runtime/serving/netlink.h"
#include "runtime/serving/serve.h"
#include <string.h>

/* A sandbox with its own network namespace may have the full number; on the host's, a share. */
static int most_netlinks(const struct plan *plan)
{
    int n = plan->has_netns ? 0 : netlink_count();

    return n < 0 ? 0 : n + (plan->has_netns ? NETLINK_MOST : NETLINK_MOST_MORE);
}

static void put_rights(const struct plan *plan, struct rights *rights)
{
    _Static_assert(sizeof(rights->rlimits) == sizeof(plan->rlimits), "the same limits");
    *rights = (struct rights){
        .own_uid = plan->init_uid,
        .own_gid = plan->init_gid,
        .uid = plan->uid,
        .gid = plan->gid,
        .has_range = plan->has_range,
        .n_rlimits = plan->n_rlimits,
        .workspace = PLAN_WORKSPACE,
    };
    memcpy(rights->rlimits, plan->rlimits, sizeof(rights->rlimits));
}

_Noreturn void init_main(struct setup *setup)
{
    struct carrel_error err = { 0 };
    struct serving with = {
        .stays = setup->plan->stays,
        /* Before the host's /proc is unmounted. */
        .asked.netlink_most = most_netlinks(setup->plan),
    };

    put_rights(setup->plan, &with.rights);
    setup->stack_end = serve_stack_end();
    int r = setup_run(setup, &err);
    if (r < 0)
        serve_refuse(setup->sock, &err);
    with.sock = setup->sock;
    with.events = setup->events;
    with.owner = setup->owner;
    with.space_fd = setup->space_fd;
    with.listener = setup->listener;
    serve(&with);
}
