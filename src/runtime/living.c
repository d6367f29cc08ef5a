/* living.c - the front, for a living sandbox: list, pause, expire, update. */
#include "base/err.h"
#include "runtime/front.h"
#include "runtime/runtime.h"
#include <assert.h>
#include <errno.h>

int sandbox_ps(
        struct sandbox *box, struct sandbox_process *out, size_t max, struct carrel_error *err)
{
    int r = front_check_running(box, err);
    if (r < 0)
        return r;
    if (!box->ops->ps)
        return front_lacks(box->ops, "list the processes of a sandbox", err);
    r = box->ops->ps(box, out, max, err);
    return r < 0 ? front_fail(box->ops, r, err) : r;
}

int sandbox_pause(struct sandbox *box, struct carrel_error *err)
{
    const char *by = NULL;

    int r = front_check_running(box, err);
    if (r < 0 || (box->paused_by && !box->is_pause_unsure))
        return r;
    if (!box->ops->pause)
        return front_lacks(box->ops, "pause a sandbox", err);
    r = box->ops->pause(box, &by, err);
    box->is_pause_unsure = r < 0;
    if (r < 0)
        return front_fail(box->ops, r, err);
    assert(by);
    if (!box->ops->is_proxy) /* else others may resume it */
        box->paused_by = by;
    return 0;
}

int sandbox_resume(struct sandbox *box, struct carrel_error *err)
{
    int r = front_check_running(box, err);
    if (r < 0)
        return r;
    if (!box->ops->resume)
        return front_lacks(box->ops, "resume a sandbox", err);
    if (!box->paused_by && !box->is_pause_unsure && !box->ops->is_proxy)
        return 0;
    r = box->ops->resume(box, err);
    box->is_pause_unsure = r < 0;
    if (r < 0)
        return front_fail(box->ops, r, err);
    box->paused_by = NULL;
    return 0;
}

int sandbox_set_lease(
        struct sandbox *box, uint64_t end_ns, uint64_t idle_ms, struct carrel_error *err)
{
    int r = front_check_running(box, err);
    if (r < 0)
        return r;
    if (!box->ops->set_lease)
        return front_lacks(box->ops, "end a sandbox after a time", err);
    if (end_ns > INT64_MAX || idle_ms > INT64_MAX / 1000000)
        r = err_set(err, -EINVAL, "the time is out of range");
    else
        r = box->ops->set_lease(box, end_ns, idle_ms, err);
    return r < 0 ? front_fail(box->ops, r, err) : 0;
}

/* Which limits can change, and to which values: the same for all runtimes. */
static int check_update(const struct sandbox *box, const struct sandbox_limits *limits,
        unsigned which, struct carrel_error *err)
{
    const unsigned known = LIMIT_BIT(LIMIT_MEMORY) | LIMIT_BIT(LIMIT_PIDS) |
                           LIMIT_BIT(LIMIT_CPU) | LIMIT_BIT(LIMIT_IO_READ) |
                           LIMIT_BIT(LIMIT_IO_WRITE);

    for (unsigned i = 0; i < LIMIT_COUNT; i++) {
        if (!(which & LIMIT_BIT(i)))
            continue;
        if (!(known & LIMIT_BIT(i)))
            return err_set(err, -ENOTSUP, "the %s limit cannot change while the sandbox lives",
                    limit_name(i));
        if (limits->value[i] == 0)
            return err_set(err, -EINVAL, "the %s limit is zero", limit_name(i));
        if (i >= LIMIT_OPTIONAL && box->held_by[i] == HELD_BY_NOTHING)
            return err_set(err, -ENOTSUP,
                    "the sandbox was made without the %s limit, so it cannot get one now",
                    limit_name(i));
        if (box->held_by[i] != HELD_BY_CGROUP)
            return err_set(err, -ENOTSUP,
                    "the %s limit is enforced by %s, not by a cgroup, so it cannot change now",
                    limit_name(i), limit_holder_name(box->held_by[i]));
    }
    return which & ~(LIMIT_BIT(LIMIT_COUNT) - 1)
                   ? err_set(err, -EINVAL, "a set of limits has an unknown member")
                   : 0;
}

int sandbox_update(struct sandbox *box, const struct sandbox_limits *limits, unsigned which,
        struct carrel_error *err)
{
    int r = front_check_running(box, err);
    if (r < 0)
        return r;
    if (!box->ops->update)
        return front_lacks(box->ops, "change the limits of a sandbox", err);
    r = box->ops->is_proxy ? 0 : check_update(box, limits, which, err);
    if (r == 0 && which)
        r = box->ops->update(box, limits, which, err);
    return r < 0 ? front_fail(box->ops, r, err) : 0;
}
