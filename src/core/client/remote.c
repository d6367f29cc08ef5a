/* remote.c - requests to a keeper, one after the other. */
#include "core/client/remote.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/payload.h"
#include "core/client/keeper_alive.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <sys/socket.h>
#include <unistd.h>

static struct remote *remote_of(struct sandbox *box);

static void close_all(int *fds, int n)
{
    for (int i = 0; i < n; i++)
        fd_close(fd_steal(&fds[i]));
}

int remote_await(struct remote *remote, enum keeper_kind kind, struct carrel_error *err)
{
    struct pollfd answer = { .fd = remote->sock, .events = POLLIN };
    struct keeper_check check = KEEPER_CHECK_INIT;

    if (remote->is_stuck)
        return keeper_give_up(remote->keeper, "was given up before", err);
    for (;;) {
        const uint64_t deadline = clock_ns() + KEEPER_CHECK_MS * UINT64_C(1000000);
        int n;
        do {
            n = poll(&answer, 1, clock_poll_ms(deadline));
        } while (n < 0 && errno == EINTR);
        if (n != 0)
            return n < 0 ? err_set_errno(err, -errno, "poll") : 0;
        int r = keeper_check_alive(&check, remote->keeper, kind, err);
        if (r < 0) {
            remote->is_stuck = true;
            return r;
        }
    }
}

int remote_ask(struct remote *remote, struct keeper_message *message, const int *given,
        size_t n_given, int *fds, struct carrel_error *err)
{
    int own[KEEPER_MAX_FDS];
    int *got = fds ? fds : own;

    const enum keeper_kind kind = (enum keeper_kind)message->kind;

    int r = remote->is_stuck ? 0 : keeper_send(remote->sock, message, given, n_given, 0);
    if (r == 0) {
        r = remote_await(remote, kind, err);
        if (r < 0)
            return r;
    }
    int n = r < 0 ? r : keeper_receive(remote->sock, message, got, 0);
    if (n == -EPIPE || n == -ECONNRESET)
        return err_set(err, -ESRCH, "the sandbox has ended");
    if (n < 0)
        return err_set_errno(err, n, "talk to the keeper of the sandbox");
    if (message->kind == KEEPER_DONE) {
        if (!fds)
            close_all(own, n);
        return n;
    }
    close_all(got, n);
    if (message->kind != KEEPER_FAILED)
        return err_set(err, -EPROTO, "unexpected answer %u from the keeper", message->kind);
    return err_take(err, &message->error);
}

/* The answer's descriptors in the order in which the keeper has them. */
static void take_streams(const struct keeper_message *answer, int *fds, int n, bool has_tty,
        struct process *process)
{
    int at = 0;

    if (answer->flags & KEEPER_STDIN && at < n)
        process->stdin_fd = fd_steal(&fds[at++]);
    if (at < n)
        process->stdout_fd = fd_steal(&fds[at++]);
    if (!has_tty && at < n)
        process->stderr_fd = fd_steal(&fds[at++]);
    for (int i = 0; i < PROCESS_EXTRA && at < n; i++)
        process->extra_fds[i] = fd_steal(&fds[at++]);
}

static int start(struct sandbox *box, const struct process_spec *spec, struct process *out,
        struct carrel_error *err)
{
    struct remote *remote = remote_of(box);
    struct keeper_message message = {
        .kind = KEEPER_START,
        .flags = (spec->has_tty ? KEEPER_TTY : 0U) | (spec->has_stdin ? KEEPER_STDIN : 0U) |
                 (spec->has_user ? KEEPER_USER : 0U) |
                 (remote->is_detaching ? KEEPER_DETACH : 0U) |
                 (remote->is_alone ? KEEPER_ALONE : 0U),
        .rows = spec->rows,
        .cols = spec->cols,
        .value = (int32_t)spec->n_extra,
        .uid = spec->uid,
        .gid = spec->gid,
        .timeout_ms = remote->timeout_ms,
    };
    int fds[KEEPER_MAX_FDS];

    AUTO(fd_close) int payload = -1;
    int r = payload_make_near(
            spec->cwd ? spec->cwd : "", spec->argv, spec->env, &message.payload, &payload, err);
    if (r < 0)
        return r;
    int n = remote_ask(remote, &message, &payload, payload >= 0, fds, err);
    if (n < 0)
        return n;
    out->id = message.process;
    remote->timeout_ms = message.timeout_ms;
    if (!remote->is_detaching)
        take_streams(&message, fds, n, spec->has_tty, out);
    close_all(fds, n);
    return 0;
}

static int next_event(
        struct sandbox *box, struct sandbox_event *event, struct carrel_error *err)
{
    struct remote *remote = remote_of(box);
    struct keeper_message message;
    int fds[KEEPER_MAX_FDS];

    *event = (struct sandbox_event){ .kind = EVENT_NONE };
    int n = keeper_receive(box->event_fd, &message, fds, MSG_DONTWAIT);
    if (n == -EAGAIN)
        return 0;
    if (n == -EPIPE) {
        /* The keeper has exited, or has dropped this client. */
        *event = (struct sandbox_event){ .kind = EVENT_GONE, .why = GONE_LOST };
        return 0;
    }
    if (n < 0)
        return err_set_errno(err, n, "read from the keeper of the sandbox");
    close_all(fds, n);
    if (message.kind != KEEPER_EXITED)
        return err_set(err, -EPROTO, "unexpected report %u from the keeper", message.kind);
    remote->oom_kills = message.oom_kills;
    remote->pids_refused = message.pids_refused;
    remote->is_over_disk = message.flags & KEEPER_FULL;
    remote->is_over_time = message.flags & KEEPER_TIMED_OUT;
    *event = (struct sandbox_event){
        .kind = EVENT_EXITED,
        .process = message.process,
        .wait_status = message.value,
    };
    return 0;
}

static int send_signal(
        struct sandbox *box, uint32_t process, int signal, struct carrel_error *err)
{
    const struct keeper_message message = {
        .kind = KEEPER_SIGNAL,
        .process = process,
        .value = signal,
    };

    int r = keeper_send(remote_of(box)->sock, &message, NULL, 0, 0);
    return r < 0 && r != -EPIPE ? err_set_errno(err, r, "send a signal") : 0;
}

static int terminate(
        struct sandbox *box, uint32_t process, uint32_t grace_ms, struct carrel_error *err)
{
    const struct keeper_message message = {
        .kind = KEEPER_SIGNAL,
        .process = process,
        .flags = KEEPER_TERMINATE,
        .value = SIGTERM,
    };

    (void)grace_ms; /* the keeper's is the same for all */
    int r = keeper_send(remote_of(box)->sock, &message, NULL, 0, 0);
    return r < 0 && r != -EPIPE ? err_set_errno(err, r, "end the program") : 0;
}

static int file(struct sandbox *box, const struct file_request *request,
        struct file_answer *answer, struct carrel_error *err)
{
    struct keeper_message message = { .kind = KEEPER_FILE, .file = *request };
    const char *const other[] = { request->other, NULL };
    int given[3];
    size_t n_given = 0;
    int fds[KEEPER_MAX_FDS];

    AUTO(fd_close) int payload = -1;
    int r = payload_make_near(request->path, other, NULL, &message.payload, &payload, err);
    if (r < 0)
        return r;
    if (payload >= 0)
        given[n_given++] = payload;
    if (request->dir >= 0) {
        given[n_given++] = request->dir;
        message.flags |= KEEPER_HAS_DIR;
    }
    if (request->watch >= 0) {
        given[n_given++] = request->watch;
        message.flags |= KEEPER_HAS_WATCH;
    }
    int n = remote_ask(remote_of(box), &message, given, n_given, fds, err);
    if (n < 0)
        return n;
    *answer = message.file_answer;
    answer->fd = n > 0 ? fd_steal(&fds[0]) : -1;
    close_all(fds, n);
    return 0;
}

/* A request without descriptors. */
static int ask_plain(
        struct sandbox *box, struct keeper_message *message, struct carrel_error *err)
{
    int r = remote_ask(remote_of(box), message, NULL, 0, NULL, err);

    return r < 0 ? r : 0;
}

static int pause_all(struct sandbox *box, const char **by, struct carrel_error *err)
{
    *by = "keeper";
    return ask_plain(box, &(struct keeper_message){ .kind = KEEPER_PAUSE }, err);
}

static int resume_all(struct sandbox *box, struct carrel_error *err)
{
    return ask_plain(box, &(struct keeper_message){ .kind = KEEPER_RESUME }, err);
}

static int update(struct sandbox *box, const struct sandbox_limits *limits, unsigned which,
        struct carrel_error *err)
{
    struct keeper_message message = { .kind = KEEPER_UPDATE };

    for (unsigned i = 0; i < LIMIT_COUNT; i++)
        if (which & LIMIT_BIT(i))
            message.limit[i] = limits->value[i];
    return ask_plain(box, &message, err);
}

static int stop(struct sandbox *box, struct sandbox_usage *usage, struct carrel_error *err)
{
    struct remote *remote = remote_of(box);

    (void)usage;
    (void)err;
    /* A process that the caller forked may have copies; but in such a process it is not ours.
     */
    if (remote->sock >= 0 && remote->opener == getpid())
        (void)shutdown(remote->sock, SHUT_RDWR);
    fd_close(fd_steal(&remote->sock));
    fd_close(fd_steal(&box->event_fd));
    return 0;
}

static void free_box(struct sandbox *box)
{
    (void)stop(box, NULL, NULL);
    free(remote_of(box));
}

static const struct runtime_ops ops = {
    .name = "keeper",
    .is_proxy = true,
    .start = start,
    .next_event = next_event,
    .signal = send_signal,
    .terminate = terminate,
    .stop = stop,
    .free = free_box,
    .file = file,
    .pause = pause_all,
    .resume = resume_all,
    .update = update,
};

static struct remote *remote_of(struct sandbox *box)
{
    assert(box->ops == &ops);
    return container_of(box, struct remote, base);
}

static int say_hello(struct remote *remote, struct carrel_error *err)
{
    struct keeper_message message = { .kind = KEEPER_HELLO, .value = KEEPER_VERSION };
    int events[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, events) < 0)
        return err_set_errno(err, -errno, "socketpair");
    remote->base.event_fd = events[0];
    int r = remote_ask(remote, &message, &events[1], 1, NULL, err);
    fd_close(events[1]);
    if (r == -EPROTO || r == -ESRCH) /* it does not know our words, or hung up on them */
        return err_set(err, r,
                "the sandbox has just ended, or its keeper runs another version of carrel, "
                "which 'carrel destroy --force' ends");
    if (r < 0)
        return r;
    remote->facts = message.facts;
    remote->base.isolation = (enum isolation)remote->facts.isolation;
    remote->base.can = remote->facts.can;
    remote->base.protections = remote->facts.protections;
    memcpy(remote->base.held_by, remote->facts.held_by, sizeof(remote->base.held_by));
    remote->base.workspace = "/workspace";
    return 0;
}

int remote_open(int sock, pid_t keeper, struct remote **out, struct carrel_error *err)
{
    struct remote *remote = calloc(1, sizeof(*remote));

    if (!remote) {
        fd_close(sock);
        return err_set_errno(err, -ENOMEM, "sandbox");
    }
    sandbox_init(&remote->base, &ops);
    remote->oom_kills = remote->pids_refused = USAGE_UNKNOWN;
    remote->sock = sock;
    remote->keeper = keeper;
    remote->opener = getpid();
    int r = say_hello(remote, err);
    if (r < 0) {
        remote_free(remote);
        return r;
    }
    *out = remote;
    return 0;
}

void remote_free(struct remote *remote)
{
    if (remote)
        sandbox_free(&remote->base);
}
