/* act_as.c - file system ids: they change what init may open, and not who may signal it. */
#include "runtime/local/act_as.h"
#include "base/err.h"
#include "runtime/local/plan.h"
#include <errno.h>
#include <stdbool.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>

/* The calls say nothing of failure; asking for an impossible id tells what is in force. */
static bool are_in_force(uid_t uid, gid_t gid)
{
    return (uid_t)setfsuid((uid_t)-1) == uid && (gid_t)setfsgid((gid_t)-1) == gid;
}

/* Changing ids would undo the tie to init's owner: see init.c. */
static void set_ids(uid_t uid, gid_t gid, bool is_init)
{
    int tie = 0;

    (void)prctl(PR_GET_PDEATHSIG, &tie, 0, 0, 0);
    if (is_init)
        (void)setfsuid(uid);
    (void)setfsgid(gid); /* under init's own id: without it we could not */
    if (!is_init)
        (void)setfsuid(uid);
    (void)prctl(PR_SET_PDEATHSIG, tie, 0, 0, 0);
}

int act_as(const struct plan *plan, uid_t uid, gid_t gid, struct carrel_error *err)
{
    if (!plan->has_range && (uid != plan->uid || gid != plan->gid))
        return err_set(err, -EPERM, "this sandbox has one user: %u", (unsigned)plan->uid);
    if (!plan->has_range)
        return 0;
    set_ids(uid, gid, false);
    if (are_in_force(uid, gid))
        return 0;
    act_as_init(plan);
    return err_set(err, -EPERM, "the sandbox has no user %u:%u", (unsigned)uid, (unsigned)gid);
}

void act_as_init(const struct plan *plan)
{
    if (!plan->has_range)
        return;
    set_ids(plan->init_uid, plan->init_gid, true);
}
