/*
 * act_as.c - file system ids: they change what init may open, but not which processes may
 * signal it.
 */
#include "runtime/serving/act_as.h"
#include "base/err.h"
#include "runtime/serving/rights.h"
#include <errno.h>
#include <sys/fsuid.h>

/* The calls do not report failure; asking for an invalid id returns the one in force. */
static bool are_in_force(uid_t uid, gid_t gid)
{
    return (uid_t)setfsuid((uid_t)-1) == uid && (gid_t)setfsgid((gid_t)-1) == gid;
}

int act_as(const struct rights *rights, uid_t uid, gid_t gid, struct carrel_error *err)
{
    if (!rights->has_range && (uid != rights->uid || gid != rights->gid))
        return err_set(err, -EPERM, "this sandbox has one user: %u", (unsigned)rights->uid);
    if (!rights->has_range)
        return 0;
    (void)setfsgid(gid); /* first: with another uid we could not */
    (void)setfsuid(uid);
    if (are_in_force(uid, gid))
        return 0;
    act_as_self(rights);
    return err_set(err, -EPERM, "the sandbox has no user %u:%u", (unsigned)uid, (unsigned)gid);
}

void act_as_self(const struct rights *rights)
{
    if (!rights->has_range)
        return;
    (void)setfsuid(rights->own_uid);
    (void)setfsgid(rights->own_gid);
}
