/*
 * local_living.c - operations on a sandbox between its first process and its end.
 *
 * Pausing needs no help of init if a cgroup has a freezer, but init must be able to undo it: it
 * kills the programs when the lease expires or the owner dies, and on cgroup v1 frozen
 * processes do not die. So init is given the freezer's file first, once, and then the programs
 * are frozen.
 */
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/proc_tree.h"
#include "runtime/local/cgroup/cgroup_io.h"
#include "runtime/local/cgroup/cgroup_limits.h"
#include "runtime/local/cgroup/freezer.h"
#include "runtime/local/local.h"
#include "runtime/local/plan.h"
#include "runtime/ps.h"
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_PIDS 65536U
#define STILL_NS (UINT64_C(5) * 1000000000)

/* Every process of the namespace is in the group and below init: none can leave either. */
int local_pids(struct sandbox *box, pid_t *pids, size_t max, struct carrel_error *err)
{
    const struct local *local = local_of(box);

    if (local->cgroup.version == CGROUP_NONE) {
        int r = proc_tree_list(local->pid, pids, max);
        return r < 0 ? err_set_errno(err, r, "list the processes below init") : r;
    }
    int n = cgroup_members(&local->cgroup, pids, max, err);
    for (int i = 0; i < n; i++)
        if (pids[i] == local->pid)
            pids[i--] = pids[--n];
    return n;
}

/* The id in the sandbox of a host id, or the overflow id if it is not mapped. */
static uid_t inner_id(const struct local *local, uid_t uid)
{
    const uid_t first = SLOT_FIRST_ID + local->slot.number * PLAN_RANGE;

    if (local->plan->has_subids) {
        struct subids_line lines[SUBIDS_LINES];
        size_t n = subids_lines(local->plan->uid, geteuid(), local->plan->subids.uid, lines);
        uint32_t shown = subids_shown(lines, n, uid);
        return shown == UINT32_MAX ? 65534 : shown;
    }
    if (!local->plan->has_range)
        return uid == geteuid() ? local->plan->uid : 65534;
    return uid >= first && uid - first < PLAN_RANGE ? uid - first : 65534;
}

static void describe(const struct local *local, struct sandbox_process *process)
{
    process->uid = inner_id(local, process->uid);
    if (process->inner_parent != 0)
        return;
    process->inner_parent = 1;
    process->process = started_find(&local->wired.started, process->inner_pid);
}

int local_ps(
        struct sandbox *box, struct sandbox_process *out, size_t max, struct carrel_error *err)
{
    int n = ps_list(box, out, max, err);

    for (int i = 0; i < n; i++)
        describe(local_of(box), &out[i]);
    return n;
}

/* Gives init the file to thaw, if it needs one. */
static int give_freezer(struct local *local, struct carrel_error *err)
{
    const struct wire_message message = { .kind = WIRE_FREEZER };

    if (local->knows_freezer)
        return 0;
    AUTO(fd_close) int state = freezer_open(&local->cgroup);
    if (state < 0 && state != -ENOTSUP)
        return err_set_errno(err, state, "open the freezer's state");
    int r = state < 0 ? 0 : wired_ask(&local->wired, &message, &state, 1, err);
    local->knows_freezer = r == 0;
    return r;
}

/* The programs run: init need not thaw them any more. */
static int revoke_freezer(struct local *local, struct carrel_error *err)
{
    const struct wire_message message = { .kind = WIRE_FREEZER };

    if (!local->knows_freezer)
        return 0;
    local->knows_freezer = false;
    return wired_ask(&local->wired, &message, NULL, 0, err);
}

/* Not running, and not able to run by itself. D: such a process stops before it runs again. */
static bool is_still(pid_t pid)
{
    struct sandbox_process process;

    return ps_read(pid, &process) < 0 || strchr("TtZXD", process.state);
}

/*
 * A signal to all is sent atomically, including forks in progress (kill(2): since Linux 4.19 a
 * fork restarts when such a signal comes), but each process stops at its own time.
 */
static int await_still(struct local *local, struct carrel_error *err)
{
    const uint64_t deadline = clock_ns() + STILL_NS;
    AUTO(free) pid_t *pids = malloc(MAX_PIDS * sizeof(*pids));

    if (!pids)
        return err_set_errno(err, -ENOMEM, "list processes");
    for (;;) {
        int n = local_pids(&local->wired.base, pids, MAX_PIDS, err);
        if (n < 0)
            return n;
        while (n > 0 && is_still(pids[n - 1]))
            n--;
        if (n == 0)
            return 0;
        if (clock_ns() > deadline)
            return err_set(err, -EBUSY, "process %d does not stop", (int)pids[n - 1]);
        (void)poll(NULL, 0, 1); /* there is no event when a grandchild stops */
    }
}

static int pause_by_signals(struct local *local, struct carrel_error *err)
{
    int r = wired_signal_all(&local->wired, WIRE_PAUSE, err);
    if (r < 0)
        return r;
    r = await_still(local, err);
    if (r < 0)
        (void)wired_signal_all(
                &local->wired, WIRE_RESUME, NULL); /* the error above is what matters */
    return r;
}

int local_pause(struct sandbox *box, const char **by, struct carrel_error *err)
{
    struct local *local = local_of(box);

    int r = freezer_make(&local->cgroup, err);
    if (r == -ENOTSUP) {
        *by = "signals";
        return pause_by_signals(local, err);
    }
    *by = "freezer";
    if (r == 0)
        r = give_freezer(local, err);
    if (r == 0)
        r = freezer_freeze(&local->cgroup, local->pid, err);
    if (r < 0)
        (void)revoke_freezer(local, NULL); /* the error above is what matters */
    return r;
}

int local_resume(struct sandbox *box, struct carrel_error *err)
{
    struct local *local = local_of(box);

    if (local->cgroup.freezer < 0)
        return wired_signal_all(&local->wired, WIRE_RESUME, err);
    int r = freezer_thaw(&local->cgroup);
    return r < 0 ? err_set_errno(err, r, "thaw the cgroup") : revoke_freezer(local, err);
}

/* The front has checked that a cgroup enforces the limits to be changed. */
int local_update(struct sandbox *box, const struct sandbox_limits *limits, unsigned which,
        struct carrel_error *err)
{
    const struct cgroup *group = &local_of(box)->cgroup;

    int r = cgroup_update_io(group, limits, which, err);
    if (r == 0)
        r = cgroup_update_limits(group, limits, which, err);
    return r;
}
