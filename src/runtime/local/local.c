/*
 * local.c - the host's side of a sandbox that local_make.c created: its programs' users, its
 * figures and its end. The rest is wired.c, which asks its init.
 */
#include "runtime/local/local.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/rundir.h"
#include "runtime/adapters.h"
#include "runtime/local/cgroup/freezer.h"
#include "runtime/local/health.h"
#include "runtime/local/host.h"
#include "runtime/local/inside/sys.h"
#include "runtime/local/plan.h"
#include "runtime/local/skeleton.h"
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <sys/wait.h>

/* How long a killed sandbox may hang in the kernel before we report that instead of waiting. */
#define GONE_MS 10000
void local_kill(struct wired *wired)
{
    (void)sys_pidfd_send_signal(container_of(wired, struct local, wired)->pidfd, SIGKILL);
}

static int wait_gone(struct local *local)
{
    struct pollfd gone = { .fd = local->pidfd, .events = POLLIN };
    uint64_t deadline = clock_ns() + GONE_MS * UINT64_C(1000000);
    siginfo_t info = { 0 };

    int r;
    do {
        r = poll(&gone, 1, clock_poll_ms(deadline));
    } while (r < 0 && errno == EINTR);
    if (r <= 0)
        return -ETIMEDOUT;
    if (waitid(P_PIDFD, (id_t)local->pidfd, &info, WEXITED | __WALL) < 0)
        return -errno;
    return 0;
}

/* Releases what is independent of the processes. */
static void release(struct local *local)
{
    cgroup_remove(&local->cgroup);
    slot_release(&local->slot);
}

/* The user of the program; it must exist in the sandbox. */
static int check_user(const struct plan *plan, uid_t uid, gid_t gid, struct carrel_error *err)
{
    if (plan->has_range)
        return (uid < PLAN_RANGE || uid == plan->uid) && (gid < PLAN_RANGE || gid == plan->gid)
                       ? 0
                       : err_set(err, -EINVAL,
                                 "user %u:%u: ids in a sandbox range from 0 to %u",
                                 (unsigned)uid, (unsigned)gid, PLAN_RANGE - 1);
    if (uid == plan->uid && gid == plan->gid)
        return 0;
    return err_set(err, -EPERM,
            "user %u:%u: a sandbox made without root has one user, here %u:%u, unless it is "
            "made with --ids sub",
            (unsigned)uid, (unsigned)gid, (unsigned)plan->uid, (unsigned)plan->gid);
}

static int local_start(struct sandbox *box, const struct process_spec *spec,
        struct process *out, struct carrel_error *err)
{
    struct local *local = local_of(box);
    const uid_t uid = spec->has_user ? spec->uid : local->plan->uid;
    const gid_t gid = spec->has_user ? spec->gid : local->plan->gid;

    int r = check_user(local->plan, uid, gid, err);
    return r < 0 ? r : wired_start(&local->wired, spec, uid, gid, out, err);
}

static int local_usage(struct sandbox *box, enum usage_part part, struct sandbox_usage *usage,
        struct carrel_error *err)
{
    const struct local *local = local_of(box);

    (void)err;
    if (part == USAGE_REFUSALS) {
        cgroup_refusals(&local->cgroup, usage);
        return 0;
    }
    cgroup_usage(&local->cgroup, usage);
    if (!wired_put_usage(&local->wired, usage))
        usage->cpu_ms = cgroup_cpu_ms(&local->cgroup); /* including what init has used */
    return 0;
}

/* Kills init, too; the wait for it tells whether it had exited already. */
static void end_programs(struct local *local, struct sandbox_usage *usage)
{
    if (local->is_ended)
        return;
    wired_stop_programs(&local->wired);
    local_kill(&local->wired);
    (void)freezer_thaw(&local->cgroup); /* after the signal: frozen processes do not die */
    (void)local_usage(
            &local->wired.base, USAGE_ALL, usage, NULL); /* all have exited: this is final */
    local->is_ended = true;
}

static int local_stop(
        struct sandbox *box, struct sandbox_usage *usage, struct carrel_error *err)
{
    struct local *local = local_of(box);

    if (local->pidfd < 0)
        return 0;
    end_programs(local, usage);
    int r = wait_gone(local);
    if (r < 0)
        return err_set(err, r,
                "the sandbox was killed but a process in it still hangs in the kernel; its "
                "cgroup "
                "is removed by a later 'carrel cleanup'");
    fd_close(fd_steal(&local->pidfd));
    release(local);
    return 0;
}

/*
 * Unless init has reported that it is alone, only the wait tells when the programs have exited.
 */
static int local_end(struct sandbox *box, struct sandbox_usage *usage, struct carrel_error *err)
{
    struct local *local = local_of(box);

    if (local->pidfd < 0)
        return 0;
    end_programs(local, usage);
    return wired_is_alone(&local->wired) ? 0 : local_stop(box, usage, err);
}

static void local_free(struct sandbox *box)
{
    struct local *local = local_of(box);
    struct sandbox_usage unused = USAGE_INIT;

    (void)local_stop(box, &unused, NULL); /* the sweep reports what hangs */
    fd_close(local->pidfd);
    wired_finish(&local->wired);
    release(local);
    plan_free(local->plan);
    free(local);
}

static int local_health(struct runtime *rt, uint64_t missing, struct runtime_health *health,
        struct carrel_error *err)
{
    (void)rt;
    (void)err;
    health_explain(missing, health);
    return 0;
}

static int local_sweep(struct runtime *rt, struct carrel_error *err)
{
    struct cgroup_parent where;

    (void)rt;
    AUTO(fd_close) int dir = rundir_open(err);
    if (dir < 0)
        return dir;
    cgroup_find(&where);
    int swept = slot_sweep(dir, &where, err);
    int r = swept < 0 ? swept : skeleton_sweep(dir, err);
    return r < 0 ? r : swept;
}

static void local_identity(
        struct runtime *rt, const struct sandbox_spec *spec, uid_t *uid, gid_t *gid)
{
    (void)rt;
    plan_identity(spec, host_has_ranges(), uid, gid);
}

static const struct runtime_ops ops = {
    .name = "local",
    .isolation = ISOLATION_KERNEL,
    .can = CAN_MOUNT | CAN_OVERLAY | CAN_DESCRIPTORS | CAN_HOST_PIDS | CAN_START_EARLY,
    .create = local_create,
    .ready = wired_ready,
    .start = local_start,
    .next_event = wired_next_event,
    .signal = wired_signal,
    .terminate = wired_terminate,
    .stop = local_stop,
    .end = local_end,
    .free = local_free,
    .usage = local_usage,
    .file = wired_file,
    .ps = local_ps,
    .pids = local_pids,
    .pause = local_pause,
    .resume = local_resume,
    .set_lease = wired_set_lease,
    .update = local_update,
    .health = local_health,
    .sweep = local_sweep,
    .identity = local_identity,
};

struct runtime local_runtime = { .ops = &ops };

struct local *local_of(struct sandbox *box)
{
    assert(box->ops == &ops);
    return container_of(wired_of(box), struct local, wired);
}
