/* wired.c - requests over the wire, one after the other, and the reports. See wired.h. */
#include "runtime/wired.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/payload.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <sys/socket.h>
#include <unistd.h>

/* How long the server may take to answer: setups and starts take milliseconds. */
#define ANSWER_MS 60000
/* The same once it is ready: other requests wait meanwhile. */
#define READY_ANSWER_MS 20000
/* How long it may take to kill the programs before it is killed with them. */
#define STOPPED_MS 2000

void wired_init(
        struct wired *wired, const struct runtime_ops *ops, void (*kill)(struct wired *))
{
    *wired = (struct wired){ .sock = -1, .kill = kill };
    sandbox_init(&wired->base, ops);
}

void wired_finish(struct wired *wired)
{
    fd_close(fd_steal(&wired->sock));
    fd_close(fd_steal(&wired->base.event_fd));
    started_finish(&wired->started);
}

static void keep_report(struct wired *wired, const struct wire_message *message)
{
    wired->report = *message;
    wired->has_report = true;
}

/* A server that is ready takes requests at once, unless it is blocked: then we do not wait. */
static int ask(
        struct wired *wired, const struct wire_message *message, const int *fds, size_t n)
{
    wired->base.touched_ns = clock_boot_ns();
    return wire_send(wired->sock, message, fds, n, wired->is_ready ? MSG_DONTWAIT : 0);
}

/* Waits for an answer. False: none came before the deadline, or before the cancel. */
static bool await_answer(const struct wired *wired, uint64_t deadline_ns, int cancel_fd)
{
    struct pollfd watch[] = {
        { .fd = wired->sock, .events = POLLIN },
        { .fd = cancel_fd, .events = POLLIN },
    };

    while (poll(watch, ARRAY_LEN(watch), clock_poll_ms(deadline_ns)) < 0 && errno == EINTR)
        ;
    return watch[0].revents != 0;
}

/* Takes the answer to a request, or waits for it. */
static int receive(struct wired *wired, enum wire_kind kind, struct wire_message *message,
        int *fd, struct carrel_error *err)
{
    int fds[WIRE_MAX_FDS];

    int n = wire_receive(wired->sock, message, fds, 0);
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
        wired->kill(wired); /* it cannot be trusted any more */
        return err_set(err, -EPROTO, "unexpected answer %u of the sandbox", message->kind);
    }
    return 0;
}

/*
 * Waits for the answer to a request, with a timeout of its own: a file system that hangs must
 * not block us. The caller's deadline and cancel leave the request as it is.
 */
static int await_until(struct wired *wired, enum wire_kind kind, struct wire_message *message,
        int *fd, uint64_t deadline_ns, int cancel_fd, struct carrel_error *err)
{
    const unsigned answer_ms = wired->is_ready ? READY_ANSWER_MS : ANSWER_MS;
    const uint64_t own_ns = clock_ns() + answer_ms * UINT64_C(1000000);

    if (await_answer(wired, deadline_ns < own_ns ? deadline_ns : own_ns, cancel_fd))
        return receive(wired, kind, message, fd, err);
    if (clock_ns() >= own_ns) { /* a late answer would be mistaken for that of the next request
                                 */
        wired->kill(wired);
        return err_set(err, -ETIMEDOUT,
                "no answer from the sandbox within %u seconds; it was killed",
                answer_ms / 1000);
    }
    return clock_ns() >= deadline_ns
                   ? err_set(err, -ETIMEDOUT, "the sandbox was not ready in time")
                   : err_set(err, -ECANCELED, "cancelled before the sandbox was ready");
}

static int await(struct wired *wired, enum wire_kind kind, struct wire_message *message,
        int *fd, struct carrel_error *err)
{
    return await_until(wired, kind, message, fd, CLOCK_NEVER, -1, err);
}

int wired_ready(
        struct sandbox *box, uint64_t deadline_ns, int cancel_fd, struct carrel_error *err)
{
    struct wired *wired = wired_of(box);
    struct wire_message answer;

    int r = wired->is_ready ? 0
                            : await_until(wired, WIRE_READY, &answer, NULL, deadline_ns,
                                      cancel_fd, err);
    wired->is_ready = wired->is_ready || r == 0;
    return r;
}

static int become_ready(struct wired *wired, struct carrel_error *err)
{
    return wired_ready(&wired->base, CLOCK_NEVER, -1, err);
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

/* The terminal came with the answer. */
static int use_terminal(struct streams *streams, struct carrel_error *err)
{
    streams->ours.stdout_fd = fcntl(streams->ours.stdin_fd, F_DUPFD_CLOEXEC, 3);
    return streams->ours.stdout_fd < 0
                   ? err_set_errno(err, -errno, "the terminal of the new process")
                   : 0;
}

int wired_start(struct wired *wired, const struct process_spec *spec, uid_t uid, gid_t gid,
        struct process *out, struct carrel_error *err)
{
    AUTO(streams_close) struct streams streams = STREAMS_INIT;
    struct wire_message message = {
        .kind = WIRE_START,
        .flags = (spec->has_tty ? WIRE_TTY : 0U) | (spec->ends_sandbox ? WIRE_LAST : 0U),
        .rows = spec->rows,
        .cols = spec->cols,
        .n_extra = spec->n_extra,
        .uid = uid,
        .gid = gid,
    };

    int r = started_reserve(&wired->started, err);
    if (r < 0)
        return r;
    AUTO(fd_close) int payload = -1;
    r = payload_make_near(spec->cwd ? spec->cwd : wired->base.workspace, spec->argv, spec->env,
            &message.payload, &payload, err);
    if (r == 0)
        r = streams_open(&streams, spec, err);
    if (r < 0)
        return setup_error(r, err);
    int fds[WIRE_MAX_FDS] = { payload };
    r = ask(wired, &message, fds, streams_add_theirs(&streams, fds, payload >= 0));
    if (r < 0 && (r != -EPIPE || wired->is_ready)) /* else the setup failed, and says why */
        return setup_error(err_set_errno(err, r, "ask the sandbox to start a process"), err);
    r = become_ready(wired, err);
    if (r < 0)
        return setup_error(r, err);
    r = await(wired, WIRE_STARTED, &message, &streams.ours.stdin_fd, err);
    if (r == 0 && spec->has_tty)
        r = use_terminal(&streams, err);
    if (r < 0)
        return r;
    started_add(&wired->started, message.process, message.value);
    *out = streams_steal(&streams, message.process);
    return 0;
}

int wired_next_event(struct sandbox *box, struct sandbox_event *event, struct carrel_error *err)
{
    struct wired *wired = wired_of(box);
    struct wire_message message;
    int fds[WIRE_MAX_FDS];

    *event = (struct sandbox_event){ .kind = EVENT_NONE };
    int n = wire_receive(box->event_fd, &message, fds, MSG_DONTWAIT);
    if (n == -EAGAIN)
        return 0;
    if (n == -EPIPE) {
        *event = (struct sandbox_event){ .kind = EVENT_GONE, .why = wired->why };
        return 0;
    }
    if (n < 0)
        return err_set_errno(err, n, "read from the sandbox");
    for (int i = 0; i < n; i++)
        fd_close(fds[i]);
    if (message.kind == WIRE_GONE) {
        keep_report(wired, &message);
        wired->why = message.value == GONE_IDLE ? GONE_IDLE : GONE_LEASE;
        *event = (struct sandbox_event){ .kind = EVENT_GONE, .why = wired->why };
        return 0;
    }
    if (message.kind != WIRE_EXITED)
        return err_set(
                err, -EPROTO, "unexpected message %u from the sandbox", (unsigned)message.kind);
    keep_report(wired, &message);
    started_remove(&wired->started, message.process);
    wired->base.touched_ns = clock_boot_ns();
    *event = (struct sandbox_event){
        .kind = EVENT_EXITED,
        .process = message.process,
        .wait_status = message.value,
        .is_with_all = message.flags & WIRE_WITH_ALL,
    };
    return 0;
}

int wired_signal(struct sandbox *box, uint32_t process, int signal, struct carrel_error *err)
{
    const struct wire_message message = {
        .kind = WIRE_SIGNAL,
        .process = process,
        .value = signal,
    };

    int r = ask(wired_of(box), &message, NULL, 0);
    return r < 0 && r != -EPIPE ? err_set_errno(err, r, "send a signal") : 0;
}

int wired_terminate(
        struct sandbox *box, uint32_t process, uint32_t grace_ms, struct carrel_error *err)
{
    const struct wire_message message = {
        .kind = WIRE_TERMINATE,
        .process = process,
        .grace_ns = grace_ms * UINT64_C(1000000),
    };

    int r = ask(wired_of(box), &message, NULL, 0);
    return r < 0 && r != -EPIPE ? err_set_errno(err, r, "end a process") : 0;
}

bool wired_is_alone(const struct wired *wired)
{
    return wired->has_report && wired->report.flags & WIRE_ALONE;
}

bool wired_put_usage(const struct wired *wired, struct sandbox_usage *usage)
{
    const struct wire_message *report = &wired->report;

    if (!wired->has_report)
        return false;
    usage->cpu_ms = report->cpu_us / 1000;
    usage->written_bytes = report->held_bytes + report->storage_bytes;
    usage->is_disk_full = report->flags & WIRE_DISK_FULL;
    if (usage->peak_memory_bytes == USAGE_UNKNOWN && report->peak_bytes > 0)
        usage->peak_memory_bytes = report->peak_bytes;
    return true;
}

void wired_stop_programs(struct wired *wired)
{
    const struct wire_message request = { .kind = WIRE_STOP };
    struct pollfd answer = { .fd = wired->sock, .events = POLLIN };
    struct wire_message report;
    struct sandbox_event event;

    if (!wired->is_ready || wired_is_alone(wired))
        return;
    if (wire_send(wired->sock, &request, NULL, 0, MSG_DONTWAIT) == 0 &&
            poll(&answer, 1, STOPPED_MS) > 0 &&
            await(wired, WIRE_STOPPED, &report, NULL, NULL) == 0) {
        keep_report(wired, &report);
        return;
    }
    while (wired_next_event(&wired->base, &event, NULL) == 0 && event.kind == EVENT_EXITED)
        ;
}

int wired_file(struct sandbox *box, const struct file_request *request,
        struct file_answer *answer, struct carrel_error *err)
{
    struct wired *wired = wired_of(box);
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
        r = become_ready(wired, err);
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
    r = ask(wired, &message, fds, (size_t)n);
    if (r < 0)
        return err_set_errno(err, r, "ask the sandbox for a file");
    AUTO(fd_close) int fd = -1;
    r = await(wired, WIRE_FILE_DONE, &message, &fd, err);
    if (r < 0)
        return r;
    if ((fd >= 0) != (request->op == FILE_OPEN || request->op == FILE_READ_LINK))
        return err_set(err, -EPROTO, "the sandbox sent no descriptor, or one too many");
    answer->watch = message.file.watch;
    answer->stat = message.file.stat;
    answer->fd = fd_steal(&fd);
    return 0;
}

int wired_ask(struct wired *wired, const struct wire_message *message, const int *fds,
        size_t n_fds, struct carrel_error *err)
{
    struct wire_message answer;

    int r = become_ready(wired, err);
    if (r < 0)
        return r;
    r = ask(wired, message, fds, n_fds);
    if (r < 0)
        return err_set_errno(err, r, "ask the sandbox");
    return await(wired, WIRE_DONE, &answer, NULL, err);
}

int wired_signal_all(struct wired *wired, enum wire_kind kind, struct carrel_error *err)
{
    const struct wire_message message = { .kind = (uint32_t)kind };

    return wired_ask(wired, &message, NULL, 0, err);
}

int wired_set_lease(
        struct sandbox *box, uint64_t end_ns, uint64_t idle_ms, struct carrel_error *err)
{
    const struct wire_message message = {
        .kind = WIRE_LEASE,
        .lease_end_ns = end_ns,
        .idle_ns = idle_ms * 1000000,
    };

    return wired_ask(wired_of(box), &message, NULL, 0, err);
}
