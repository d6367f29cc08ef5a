/*
 * local.c - the host's side of a sandbox that local_make.c created: requests to its init, and
 * its end.
 */
#include "runtime/local/local.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/payload.h"
#include "base/rundir.h"
#include "runtime/adapters.h"
#include "runtime/local/cgroup/freezer.h"
#include "runtime/local/health.h"
#include "runtime/local/host.h"
#include "runtime/local/inside/sys.h"
#include "runtime/local/plan.h"
#include "runtime/local/skeleton.h"
#include "runtime/serving/lease.h"
#include "runtime/streams.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

/* How long a killed sandbox may hang in the kernel before we report that instead of waiting. */
#define GONE_MS 10000
/* How long init may take to answer: setups and starts take milliseconds. */
#define ANSWER_MS 60000
/* The same once it is ready: other requests wait meanwhile. */
#define READY_ANSWER_MS 20000
/* How long init may take to kill the programs before it is killed with them. */
#define STOPPED_MS 2000

static void keep_report(struct local *local, const struct wire_message *message)
{
    local->report = *message;
    local->has_report = true;
}

/* An init that is ready takes requests at once, unless it is blocked: then we do not wait. */
static int ask(
        struct local *local, const struct wire_message *message, const int *fds, size_t n)
{
    local->base.touched_ns = clock_boot_ns();
    return wire_send(local->sock, message, fds, n, local->is_ready ? MSG_DONTWAIT : 0);
}

/*
 * Waits for the answer to a request, with a timeout: a file system that hangs must not block
 * us.
 */
static int await(struct local *local, enum wire_kind kind, struct wire_message *message,
        int *fd, struct carrel_error *err)
{
    struct pollfd answer = { .fd = local->sock, .events = POLLIN };
    const unsigned answer_ms = local->is_ready ? READY_ANSWER_MS : ANSWER_MS;
    uint64_t deadline = clock_ns() + answer_ms * UINT64_C(1000000);
    int fds[WIRE_MAX_FDS];

    int ready;
    do {
        ready = poll(&answer, 1, clock_poll_ms(deadline));
    } while (ready < 0 && errno == EINTR);
    if (ready == 0) { /* a late answer would be mistaken for that of the next request */
        (void)sys_pidfd_send_signal(local->pidfd, SIGKILL);
        return err_set(err, -ETIMEDOUT,
                "no answer from the sandbox within %u seconds; it was killed",
                answer_ms / 1000);
    }
    int n = wire_receive(local->sock, message, fds, 0);
    if (n == -EPIPE)
        return err_set(err, -ECHILD, "the sandbox ended before it answered");
    if (n < 0)
        return err_set_errno(err, n, "answer of the sandbox");
    if (fd && n > 0)
        *fd = fd_steal(&fds[0]);
    for (int i = 0; i < n; i++)
        fd_close(fds[i]);
    if (message->kind == WIRE_FAILED) {
        int code = message->error.code < 0 ? message->error.code : -EIO;
        return err_set(err, code, "%s", message->error.message);
    }
    if (message->kind != (uint32_t)kind) {
        (void)sys_pidfd_send_signal(local->pidfd, SIGKILL); /* it cannot be trusted any more */
        return err_set(err, -EPROTO, "unexpected answer %u of the sandbox", message->kind);
    }
    return 0;
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

static int local_ready(struct sandbox *box, struct carrel_error *err)
{
    struct local *local = local_of(box);
    struct wire_message answer;

    int r = local->is_ready ? 0 : await(local, WIRE_READY, &answer, NULL, err);
    local->is_ready = local->is_ready || r == 0;
    return r;
}

/* A failed setup must not return the codes with which a start describes the program. */
static int setup_error(int code, struct carrel_error *err)
{
    if (code == -ENOENT || code == -EACCES || code == -ENOEXEC || code == -ENOTDIR)
        code = -EINVAL;
    if (err)
        err->code = code;
    return code;
}

/* The user of the program; it must exist in the sandbox. */
static int choose_user(const struct plan *plan, const struct process_spec *spec,
        struct wire_message *message, struct carrel_error *err)
{
    message->uid = spec->has_user ? spec->uid : plan->uid;
    message->gid = spec->has_user ? spec->gid : plan->gid;
    if (plan->has_range)
        return (message->uid < PLAN_RANGE || message->uid == plan->uid) &&
                               (message->gid < PLAN_RANGE || message->gid == plan->gid)
                       ? 0
                       : err_set(err, -EINVAL,
                                 "user %u:%u: ids in a sandbox range from 0 to %u",
                                 message->uid, message->gid, PLAN_RANGE - 1);
    if (message->uid == plan->uid && message->gid == plan->gid)
        return 0;
    return err_set(err, -EPERM,
            "user %u:%u: a sandbox made without root has one user, here %u:%u, unless it is "
            "made with --ids sub",
            message->uid, message->gid, (unsigned)plan->uid, (unsigned)plan->gid);
}

static int local_start(struct sandbox *box, const struct process_spec *spec,
        struct process *out, struct carrel_error *err)
{
    struct local *local = local_of(box);
    AUTO(streams_close) struct streams streams = STREAMS_INIT;
    struct wire_message message = {
        .kind = WIRE_START,
        .flags = (spec->has_tty ? WIRE_TTY : 0U) | (spec->ends_sandbox ? WIRE_LAST : 0U),
        .rows = spec->rows,
        .cols = spec->cols,
    };

    int r = choose_user(local->plan, spec, &message, err);
    if (r == 0)
        r = started_reserve(&local->started, err);
    if (r < 0)
        return r;
    AUTO(fd_close) int payload = -1;
    r = payload_make_near(spec->cwd ? spec->cwd : PLAN_WORKSPACE, spec->argv, spec->env,
            &message.payload, &payload, err);
    if (r == 0 && !spec->has_tty)
        r = streams_open_pipes(&streams, spec, err);
    if (r < 0)
        return setup_error(r, err);
    const int fds[] = { payload, streams.theirs[0], streams.theirs[1], streams.theirs[2] };
    const size_t skipped = payload < 0;
    r = ask(local, &message, fds + skipped, (spec->has_tty ? 1 : 4) - skipped);
    if (r < 0 && (r != -EPIPE ||
                         local->is_ready)) /* else init has failed, and its message says why */
        return setup_error(err_set_errno(err, r, "ask the sandbox to start a process"), err);
    r = local_ready(box, err);
    if (r < 0)
        return setup_error(r, err);
    r = await(local, WIRE_STARTED, &message, &streams.ours.stdin_fd, err);
    if (r < 0)
        return r;
    if (spec->has_tty) { /* it came with the answer */
        streams.ours.stdout_fd = fcntl(streams.ours.stdin_fd, F_DUPFD_CLOEXEC, 3);
        if (streams.ours.stdout_fd < 0)
            return err_set_errno(err, -errno, "the terminal of the new process");
    }
    started_add(&local->started, message.process, message.value);
    *out = streams_steal(&streams, message.process);
    return 0;
}

static int local_next_event(
        struct sandbox *box, struct sandbox_event *event, struct carrel_error *err)
{
    struct local *local = local_of(box);
    struct wire_message message;
    int fds[WIRE_MAX_FDS];

    *event = (struct sandbox_event){ .kind = EVENT_NONE };
    int n = wire_receive(box->event_fd, &message, fds, MSG_DONTWAIT);
    if (n == -EAGAIN)
        return 0;
    if (n == -EPIPE) {
        *event = (struct sandbox_event){ .kind = EVENT_GONE, .why = local->why };
        return 0;
    }
    if (n < 0)
        return err_set_errno(err, n, "read from the sandbox");
    for (int i = 0; i < n; i++)
        fd_close(fds[i]);
    if (message.kind == WIRE_GONE) {
        keep_report(local, &message);
        local->why = message.value == LEASE_IDLE ? GONE_IDLE : GONE_LEASE;
        *event = (struct sandbox_event){ .kind = EVENT_GONE, .why = local->why };
        return 0;
    }
    if (message.kind != WIRE_EXITED)
        return err_set(
                err, -EPROTO, "unexpected message %u from the sandbox", (unsigned)message.kind);
    keep_report(local, &message);
    started_remove(&local->started, message.process);
    local->base.touched_ns = clock_boot_ns();
    *event = (struct sandbox_event){
        .kind = EVENT_EXITED,
        .process = message.process,
        .wait_status = message.value,
        .is_with_all = message.flags & WIRE_WITH_ALL,
    };
    return 0;
}

static int local_signal(
        struct sandbox *box, uint32_t process, int signal, struct carrel_error *err)
{
    const struct wire_message message = {
        .kind = WIRE_SIGNAL,
        .process = process,
        .value = signal,
    };

    int r = ask(local_of(box), &message, NULL, 0);
    return r < 0 && r != -EPIPE ? err_set_errno(err, r, "send a signal") : 0;
}

static int local_terminate(
        struct sandbox *box, uint32_t process, uint32_t grace_ms, struct carrel_error *err)
{
    const struct wire_message message = {
        .kind = WIRE_TERMINATE,
        .process = process,
        .grace_ns = grace_ms * UINT64_C(1000000),
    };

    int r = ask(local_of(box), &message, NULL, 0);
    return r < 0 && r != -EPIPE ? err_set_errno(err, r, "end a process") : 0;
}

static int local_usage(
        struct sandbox *box, struct sandbox_usage *usage, struct carrel_error *err)
{
    const struct local *local = local_of(box);
    const struct wire_message *report = &local->report;

    (void)err;
    cgroup_usage(&local->cgroup, usage);
    if (!local->has_report) {
        usage->cpu_ms = cgroup_cpu_ms(&local->cgroup); /* including what init has used */
        return 0;
    }
    usage->cpu_ms = report->cpu_us / 1000;
    usage->written_bytes = report->held_bytes + report->storage_bytes;
    usage->is_disk_full = report->flags & WIRE_DISK_FULL;
    if (usage->peak_memory_bytes == USAGE_UNKNOWN && report->peak_bytes > 0)
        usage->peak_memory_bytes = report->peak_bytes;
    return 0;
}

static void local_refusals(struct sandbox *box, struct sandbox_usage *usage)
{
    cgroup_refusals(&local_of(box)->cgroup, usage);
}

/*
 * Lets init kill the programs, so that it can report their usage. It has a moment for that; an
 * init that does not answer is killed anyway. One that has just exited by itself has reported
 * it already, with the exit of the last program.
 */
static void stop_programs(struct local *local)
{
    const struct wire_message request = { .kind = WIRE_STOP };
    struct pollfd answer = { .fd = local->sock, .events = POLLIN };
    struct wire_message report;
    struct sandbox_event event;

    if (!local->is_ready || (local->has_report && local->report.flags & WIRE_ALONE))
        return;
    if (wire_send(local->sock, &request, NULL, 0, MSG_DONTWAIT) == 0 &&
            poll(&answer, 1, STOPPED_MS) > 0 &&
            await(local, WIRE_STOPPED, &report, NULL, NULL) == 0) {
        keep_report(local, &report);
        return;
    }
    while (local_next_event(&local->base, &event, NULL) == 0 && event.kind == EVENT_EXITED)
        ;
}

/* Kills init, too; the wait for it tells whether it had exited already. */
static void end_programs(struct local *local, struct sandbox_usage *usage)
{
    if (local->is_ended)
        return;
    stop_programs(local);
    (void)sys_pidfd_send_signal(local->pidfd, SIGKILL);
    (void)freezer_thaw(&local->cgroup); /* after the signal: frozen processes do not die */
    (void)local_usage(&local->base, usage, NULL); /* all have exited: this is final */
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
    bool is_alone = local->has_report && local->report.flags & WIRE_ALONE;
    return is_alone ? 0 : local_stop(box, usage, err);
}

static int local_file(struct sandbox *box, const struct file_request *request,
        struct file_answer *answer, struct carrel_error *err)
{
    struct local *local = local_of(box);
    const char *const argv[] = { request->other ? request->other : "", NULL };
    const bool has_watch = request->op == FILE_WATCH;
    struct wire_message message = {
        .kind = WIRE_FILE,
        .flags = (request->dir >= 0 ? WIRE_DIR : 0U) | (request->has_user ? WIRE_USER : 0U),
        .value = request->flags,
        .mode = request->mode,
        .file = { .op = request->op,
                .uid = request->uid,
                .gid = request->gid,
                .events = request->events,
                .times = { request->times[0], request->times[1] } },
    };

    AUTO(fd_close) int payload = -1;
    int r = payload_make_near(request->path, argv, NULL, &message.payload, &payload, err);
    if (r == 0)
        r = local_ready(box, err);
    if (r < 0)
        return r;
    int fds[3];
    size_t n = 0;
    if (payload >= 0)
        fds[n++] = payload;
    if (request->dir >= 0)
        fds[n++] = request->dir;
    if (has_watch)
        fds[n++] = request->watch;
    r = ask(local, &message, fds, (size_t)n);
    if (r < 0)
        return err_set_errno(err, r, "ask the sandbox for a file");
    AUTO(fd_close) int fd = -1;
    r = await(local, WIRE_FILE_DONE, &message, &fd, err);
    if (r < 0)
        return r;
    if ((fd >= 0) != (request->op == FILE_OPEN || request->op == FILE_READ_LINK))
        return err_set(err, -EPROTO, "the sandbox sent no descriptor, or one too many");
    answer->watch = message.file.watch;
    answer->stat = message.file.stat;
    answer->fd = fd_steal(&fd);
    return 0;
}

int local_ask(struct local *local, const struct wire_message *message, const int *fds,
        size_t n_fds, struct carrel_error *err)
{
    struct wire_message answer;

    int r = local_ready(&local->base, err);
    if (r < 0)
        return r;
    r = ask(local, message, fds, n_fds);
    if (r < 0)
        return err_set_errno(err, r, "ask the sandbox");
    return await(local, WIRE_DONE, &answer, NULL, err);
}

static void local_free(struct sandbox *box)
{
    struct local *local = local_of(box);
    struct sandbox_usage unused = USAGE_INIT;

    (void)local_stop(box, &unused, NULL); /* the sweep reports what hangs */
    fd_close(local->pidfd);
    fd_close(local->sock);
    fd_close(box->event_fd);
    release(local);
    plan_free(local->plan);
    started_finish(&local->started);
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
    .create = local_create,
    .ready = local_ready,
    .start = local_start,
    .next_event = local_next_event,
    .signal = local_signal,
    .terminate = local_terminate,
    .stop = local_stop,
    .end = local_end,
    .free = local_free,
    .usage = local_usage,
    .refusals = local_refusals,
    .file = local_file,
    .pids = local_pids,
    .describe = local_describe,
    .pause = local_pause,
    .resume = local_resume,
    .set_lease = local_set_lease,
    .update = local_update,
    .health = local_health,
    .sweep = local_sweep,
    .identity = local_identity,
};

struct runtime local_runtime = { .ops = &ops };

struct local *local_of(struct sandbox *box)
{
    assert(box->ops == &ops);
    return container_of(box, struct local, base);
}
