/* living.c - the front, for a living sandbox: list, pause, expire, update. */
#include "base/err.h"
#include "runtime/front.h"
#include "runtime/ps.h"
#include "runtime/runtime.h"
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

/* Parents by the sandbox's pids; 0 for one that is not listed, which is the runtime's. */
static void find_parents(struct sandbox_process *all, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        pid_t parent = all[i].inner_parent;
        all[i].inner_parent = 0;
        for (size_t j = 0; j < n; j++)
            if (all[j].pid == parent)
                all[i].inner_parent = all[j].inner_pid;
    }
}

int sandbox_ps(
        struct sandbox *box, struct sandbox_process *out, size_t max, struct carrel_error *err)
{
    AUTO(free) pid_t *pids = calloc(max ? max : 1, sizeof(*pids));
    size_t known = 0;

    if (!pids)
        return err_set_errno(err, -ENOMEM, "list processes");
    int n = sandbox_pids(box, pids, max, err);
    for (int i = 0; i < n; i++) {
        if (ps_read(pids[i], &out[known]) == 0) /* else it has exited meanwhile */
            known++;
    }
    find_parents(out, known);
    for (size_t i = 0; box->ops->describe && i < known; i++)
        box->ops->describe(box, &out[i]);
    return n < 0 ? n : (int)known;
}

int sandbox_pause(struct sandbox *box, struct carrel_error *err)
{
    const char *by = NULL;

    int r = front_check_running(box, err);
    if (r < 0 || box->paused_by)
        return r;
    if (!box->ops->pause)
        return front_lacks(box->ops, "pause a sandbox", err);
    r = box->ops->pause(box, &by, err);
    if (r < 0)
        return front_fail(box->ops, r, err);
    assert(by);
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
    if (!box->paused_by)
        return 0;
    r = box->ops->resume(box, err);
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
    const unsigned known =
            LIMIT_BIT(LIMIT_MEMORY) | LIMIT_BIT(LIMIT_PIDS) | LIMIT_BIT(LIMIT_CPU);

    for (unsigned i = 0; i < LIMIT_COUNT; i++) {
        if (!(which & LIMIT_BIT(i)))
            continue;
        if (!(known & LIMIT_BIT(i)))
            return err_set(err, -ENOTSUP, "the %s limit cannot change while the sandbox lives",
                    limit_name(i));
        if (limits->value[i] == 0)
            return err_set(err, -EINVAL, "the %s limit is zero", limit_name(i));
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
    r = check_update(box, limits, which, err);
    if (r == 0 && which)
        r = box->ops->update(box, limits, which, err);
    return r < 0 ? front_fail(box->ops, r, err) : 0;
}
