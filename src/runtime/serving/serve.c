/*
 * serve.c - see serve.h.
 *
 * The loop here polls by itself: an idle init gives back all memory but one page, and an epoll
 * (base/loop) would be one more kernel object in each sandbox.
 */
#include "runtime/serving/serve.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/payload.h"
#include "base/trim.h"
#include "runtime/programs.h"
#include "runtime/runtime.h"
#include "runtime/serving/act_as.h"
#include "runtime/serving/launch.h"
#include "runtime/serving/lease.h"
#include "runtime/serving/serve_files.h"
#include "runtime/wire.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/vfs.h>
#include <sys/wait.h>

#define FAREWELL_MS 5000 /* for a host that does not read, when its lease has expired */

#define OWN_STACK ((64U << 10) + 2048) /* it ends within a page, in which the rest follows */

/* Stacks and the data beside them: an idle server uses a single page. */
struct server {
    char launch_stack[SPAWN_STACK];
    char stack[OWN_STACK]; /* first used by a thread of the setup, which has exited by then */
    struct serving with;
    int child_fd;   /* signalfd for SIGCHLD */
    bool is_paused; /* by signals */
    bool may_rest;  /* active since it last released memory */
    bool has_moved; /* to the stack above */
    int freezer;    /* to thaw the programs; -1: not needed now */
    struct lease lease;
    uint64_t skeleton_blocks; /* in use before the first program */
    struct programs programs;
};

/*
 * The kernel kills the rest of the namespace when we exit, but frozen processes would not die,
 * and would block our exit. Killed first and thawed then, none of them runs again.
 */
static void end_frozen(struct server *server)
{
    if (server->freezer < 0)
        return;
    (void)kill(-1, SIGKILL);
    (void)pwrite(server->freezer, WIRE_THAW, strlen(WIRE_THAW), 0);
}

/* The only way to exit once programs may run. */
static _Noreturn void leave(struct server *server, int status)
{
    end_frozen(server);
    _exit(status);
}

/*
 * Makes the kernel kill us when our owner exits. Usually the socket tells us, unless we are
 * blocked: by a program that is being started and is stopped by others of its user, by a file
 * system that does not answer, or by a SIGSTOP from outside.
 */
static int tie_to_owner(struct server *server, struct carrel_error *err)
{
    struct pollfd owner = { .fd = server->with.owner, .events = POLLIN };

    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
        return err_set(err, -EIO, "tie the server to its owner: %s", strerrordesc_np(errno));
    if (poll(&owner, 1, 0) > 0)
        leave(server, 0); /* it had exited before */
    return 0;
}

/*
 * Not while programs are frozen so that they cannot die: we must thaw them first. And the owner
 * of a run may be a thread of a larger program, whose exit is not that program's; if that
 * thread exits, we exit with it, which is early but no weaker.
 */
static void set_tie(struct server *server)
{
    int r = 0;

    if (server->with.stays && server->freezer < 0)
        r = tie_to_owner(server, NULL);
    else if (prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0) < 0 && server->with.stays)
        r = -errno;
    if (r < 0)
        leave(server, 1); /* cannot happen */
}

/* A change of the fsuid resets it. */
static void set_tie_again(struct server *server)
{
    if (server->with.stays && server->with.rights.has_range)
        set_tie(server);
}

/* A host that does not take answers has exited: so do we. */
static void answer(
        struct server *server, const struct wire_message *message, const int *fds, size_t n)
{
    if (wire_send(server->with.sock, message, fds, n, 0) < 0)
        leave(server, 1);
}

static void answer_failed(struct server *server, const struct carrel_error *err)
{
    struct wire_message message = { .kind = WIRE_FAILED, .error = *err };

    answer(server, &message, NULL, 0);
}

static void describe_space(const struct server *server, struct wire_message *message)
{
    struct statfs st;

    if (fstatfs(server->with.space_fd, &st) < 0)
        return;
    uint64_t used = st.f_blocks - st.f_bfree;
    if (used > server->skeleton_blocks)
        message->held_bytes = (used - server->skeleton_blocks) * (uint64_t)st.f_bsize;
    if (st.f_bavail == 0 || st.f_ffree == 0)
        message->flags |= WIRE_DISK_FULL;
}

/*
 * Time, memory and writes of what was reaped. A child starts with the high-water mark of init,
 * which is a copy of the caller: a peak below that tells nothing about the program.
 */
static void describe_processes(struct wire_message *message)
{
    struct rusage own;
    struct rusage children;

    if (getrusage(RUSAGE_SELF, &own) < 0 || getrusage(RUSAGE_CHILDREN, &children) < 0)
        return;
    message->storage_bytes = (uint64_t)children.ru_oublock * 512;
    message->cpu_us =
            (uint64_t)(children.ru_utime.tv_sec + children.ru_stime.tv_sec) * 1000000 +
            (uint64_t)(children.ru_utime.tv_usec + children.ru_stime.tv_usec);
    if (children.ru_maxrss > own.ru_maxrss)
        message->peak_bytes = (uint64_t)children.ru_maxrss * 1024;
}

static void describe(const struct server *server, struct wire_message *message)
{
    describe_space(server, message);
    describe_processes(message);
    message->flags |= server->programs.is_alone ? WIRE_ALONE : 0;
}

/* If no program runs any more, the sandbox is idle from now on. */
static void reap(struct server *server)
{
    const bool was_busy = server->programs.n_running > 0;
    struct signalfd_siginfo drained;

    (void)read(server->child_fd, &drained,
            sizeof(drained)); /* only a wake-up; wait4 reports everything */
    programs_reap(&server->programs);
    if (was_busy && server->programs.n_running == 0)
        lease_touch(&server->lease);
}

static void kill_namespace(struct programs *programs)
{
    (void)programs;
    (void)kill(-1, SIGKILL); /* ESRCH: no process except us; wait4 tells the same */
}

static void end_all(struct server *server)
{
    end_frozen(server);
    programs_end(&server->programs, kill_namespace);
}

/* Reports to the host which processes have exited. True: its queue is full, try again. */
static bool report(struct server *server)
{
    for (size_t i = 0; i < server->programs.n; i++) {
        struct program *p = &server->programs.all[i];
        if (!p->has_ended || p->is_reported)
            continue;
        struct wire_message message = {
            .kind = WIRE_EXITED,
            .process = p->id,
            .value = p->status,
            .flags = p->is_with_all ? WIRE_WITH_ALL : 0,
        };
        describe(server, &message);
        int r = wire_send(server->with.events, &message, NULL, 0, MSG_DONTWAIT);
        if (r == -EAGAIN)
            return true;
        if (r < 0)
            leave(server, 0); /* the host has exited */
        programs_reported(p);
    }
    return false;
}

/* A terminal of the sandbox's own devpts; the slave belongs to the program's user. */
static int open_terminal(struct server *server, const struct wire_message *request, int *slave,
        struct carrel_error *err)
{
    int r = act_as(&server->with.rights, request->uid, request->gid, err);
    if (r < 0)
        return r;
    AUTO(fd_close) int master = open("/dev/pts/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
    act_as_self(&server->with.rights);
    set_tie_again(server);
    if (master < 0)
        return err_set(err, -EIO, "open a terminal: %s", strerrordesc_np(errno));
    *slave = spawn_terminal(master, request->rows, request->cols, err);
    return *slave < 0 ? *slave : fd_steal(&master);
}

static pid_t launch_with_owner(
        struct server *server, struct launch *launch, struct carrel_error *err)
{
    int r = tie_to_owner(server, err);
    if (r < 0)
        return r;
    pid_t pid = launch_process(launch, err);
    set_tie(server);
    return pid;
}

static void start(
        struct server *server, struct wire_message *request, const int *fds, int n_fds)
{
    struct carrel_error err = { 0 };
    struct payload payload = { 0 };
    bool has_tty = request->flags & WIRE_TTY;
    AUTO(fd_close) int master = -1;
    AUTO(fd_close) int slave = -1;
    struct launch launch = {
        .rights = &server->with.rights,
        .uid = request->uid,
        .gid = request->gid,
        .base.has_tty = has_tty,
        .base.stack_end = server->launch_stack + sizeof(server->launch_stack),
    };
    struct program *place = programs_place(&server->programs);
    pid_t pid = -1;

    int r = wire_payload(request, &fds, &n_fds, &payload);
    if (r == 0 && (request->n_extra > PROCESS_EXTRA ||
                          n_fds != (has_tty ? 0 : 3) + (int)request->n_extra))
        r = -EPROTO;
    if (r < 0)
        (void)err_set(&err, -EIO, "read the start request: %s", strerrordesc_np(-r));
    else if (!place)
        r = err_set(&err, -EAGAIN, "%d processes are running already", PROGRAMS_MOST);
    else if (has_tty)
        r = master = open_terminal(server, request, &slave, &err);
    if (r >= 0) {
        launch.base.n_fds = 3 + request->n_extra;
        for (size_t i = 0; i < launch.base.n_fds; i++)
            launch.base.fds[i] = !has_tty ? fds[i] : i < 3 ? slave : fds[i - 3];
        launch.base.cwd = payload.text;
        launch.base.argv = payload.argv;
        launch.base.env = payload.env;
        r = pid = launch_with_owner(server, &launch, &err);
    }
    payload_unmap(&payload);
    if (r < 0) {
        answer_failed(server, &err);
        return;
    }

    struct wire_message message = {
        .kind = WIRE_STARTED,
        .process = programs_add(&server->programs, place, pid, request->flags & WIRE_LAST),
        .value = pid,
    };
    answer(server, &message, &master, has_tty ? 1 : 0);
}

static void serve_file(
        struct server *server, struct wire_message *request, const int *fds, int n)
{
    struct wire_message message = { .kind = WIRE_FILE_DONE };
    struct carrel_error err = { 0 };
    AUTO(fd_close) int fd = -1;

    int r = serve_file_request(&server->with.rights, request, fds, n, &message.file, &fd, &err);
    set_tie_again(server);
    if (r < 0)
        answer_failed(server, &err);
    else
        answer(server, &message, &fd, fd >= 0 ? 1 : 0);
}

static void send_signal(struct server *server, const struct wire_message *request)
{
    const struct program *p = programs_find(&server->programs, request->process);

    if (server->is_paused && request->value == SIGCONT)
        return; /* sent when the pause ends */
    if (request->process == SANDBOX_ALL) {
        (void)kill(-1, request->value); /* everything here except us; ESRCH: none */
        return;
    }
    /*
     * It leads its session, so it cannot leave its group; a second signal would be one too
     * many.
     */
    if (p)
        (void)kill(-p->pid, request->value);
}

static void terminate(struct server *server, const struct wire_message *request)
{
    struct program *p = programs_find(&server->programs, request->process);

    if (p)
        programs_terminate(p, clock_ns() + request->grace_ns);
}

static void stop(struct server *server)
{
    struct wire_message message = { .kind = WIRE_STOPPED };

    end_all(server);
    describe(server, &message);
    answer(server, &message, NULL, 0);
}

static void answer_done(struct server *server)
{
    const struct wire_message message = { .kind = WIRE_DONE };

    answer(server, &message, NULL, 0);
}

static void set_lease(struct server *server, const struct wire_message *request)
{
    struct carrel_error err = { 0 };

    if (lease_set(&server->lease, request->lease_end_ns, request->idle_ns, &err) < 0)
        answer_failed(server, &err);
    else
        answer_done(server);
}

static void take_freezer(struct server *server, int *fd)
{
    fd_close(server->freezer);
    server->freezer = fd_steal(fd);
    set_tie(server);
    answer_done(server);
}

static void set_paused(struct server *server, bool is_paused)
{
    server->is_paused = is_paused;
    (void)kill(-1, is_paused ? SIGSTOP : SIGCONT); /* ESRCH: there is no other process */
    answer_done(server);
}

static void serve_one(struct server *server)
{
    struct wire_message request;
    int fds[WIRE_MAX_FDS];

    int n = wire_receive(server->with.sock, &request, fds, MSG_DONTWAIT);
    if (n == -EAGAIN)
        return;
    if (n < 0)
        leave(server, 0); /* the host has exited */
    lease_touch(&server->lease);
    if (request.kind == WIRE_START)
        start(server, &request, fds, n);
    else if (request.kind == WIRE_FILE)
        serve_file(server, &request, fds, n);
    else if (request.kind == WIRE_SIGNAL)
        send_signal(server, &request);
    else if (request.kind == WIRE_TERMINATE)
        terminate(server, &request);
    else if (request.kind == WIRE_STOP)
        stop(server);
    else if (request.kind == WIRE_LEASE)
        set_lease(server, &request);
    else if (request.kind == WIRE_FREEZER)
        take_freezer(server, &fds[0]);
    else if (request.kind == WIRE_PAUSE || request.kind == WIRE_RESUME)
        set_paused(server, request.kind == WIRE_PAUSE);
    for (int i = 0; i < n; i++)
        fd_close(fds[i]);
}

static int prepare(struct server *server, struct carrel_error *err)
{
    sigset_t set;
    struct statfs st;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGCHLD);
    server->child_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (server->child_fd < 0)
        return err_set_errno(err, -errno, "signalfd");
    if (server->with.space_fd < 0)
        return 0;
    if (fstatfs(server->with.space_fd, &st) < 0)
        return err_set_errno(err, -errno, "measure the private space");
    server->skeleton_blocks = st.f_blocks - st.f_bfree;
    return 0;
}

/* Waits until the host has taken a report. False: it does not. */
static bool await_host(const struct server *server, int wait_ms)
{
    struct pollfd watch[] = {
        { .fd = server->with.events, .events = POLLOUT },
        { .fd = server->with.owner, .events = POLLIN },
    };

    return poll(watch, ARRAY_LEN(watch), wait_ms) > 0 && watch[0].revents && !watch[1].revents;
}

/* The process with which the sandbox ends has exited. */
static _Noreturn void end_with_last(struct server *server)
{
    end_all(server);
    while (report(server) && await_host(server, -1))
        ;
    leave(server, 0);
}

/* The host may not be reading: everything that matters is done before the report. */
static _Noreturn void end_with_lease(struct server *server, enum lease_state why)
{
    struct wire_message message = {
        .kind = WIRE_GONE,
        .value = why == LEASE_IDLE ? GONE_IDLE : GONE_LEASE,
    };

    reap(server); /* those that exited before */
    for (size_t i = 0; i < server->programs.n; i++)
        server->programs.all[i].is_with_all = !server->programs.all[i].has_ended;
    end_all(server);
    while (report(server) && await_host(server, FAREWELL_MS))
        ;
    describe(server, &message);
    while (wire_send(server->with.events, &message, NULL, 0, MSG_DONTWAIT) == -EAGAIN &&
            await_host(server, FAREWELL_MS))
        ;
    leave(server, 0);
}

static _Noreturn void live(void);

/* Releases the memory it was forked with, once, and restarts the loop below. */
static _Noreturn void move_and_live(struct server *server)
{
    server->has_moved = true;
    trim_move_stack(server->stack, sizeof(server->stack), live);
}

/* No event for a while, as most of the time. */
static void rest(struct server *server)
{
    if (!server->has_moved)
        move_and_live(server);
    trim_own_stack(server->launch_stack, sizeof(server->launch_stack) + OWN_STACK);
}

static _Noreturn void run_loop(struct server *server)
{
    for (;;) {
        bool has_backlog = report(server);
        struct pollfd watch[] = {
            { .fd = server->with.sock, .events = POLLIN },
            { .fd = server->child_fd, .events = POLLIN },
            { .fd = server->with.owner, .events = POLLIN },
            { .fd = server->with.events, .events = has_backlog ? POLLOUT : 0 },
            { .fd = server->lease.timer, .events = POLLIN },
            { .fd = server->with.listener, .events = POLLIN },
        };
        const uint64_t kill_ns = programs_next_kill(&server->programs);
        int wait_ms = kill_ns != CLOCK_NEVER ? clock_poll_ms(kill_ns)
                      : server->may_rest     ? TRIM_AFTER_MS
                                             : -1;
        int n = poll(watch, ARRAY_LEN(watch), wait_ms);
        const bool has_kill = n >= 0 && kill_ns != CLOCK_NEVER && clock_ns() >= kill_ns;
        if (has_kill)
            programs_kill(&server->programs);
        if (n == 0 && kill_ns == CLOCK_NEVER)
            rest(server);
        server->may_rest = n > 0 || kill_ns != CLOCK_NEVER;
        if (n <= 0 && !has_kill)
            continue; /* EINTR */
        if (watch[2].revents)
            leave(server,
                    0); /* the host has exited, even if another process holds its sockets */
        if (watch[1].revents || has_kill) /* including processes that waited for the kill */
            reap(server);
        if (server->programs.is_over)
            end_with_last(server);
        if (watch[5].revents)
            asked_answer(server->with.listener, &server->with.asked);
        if (watch[0].revents)
            serve_one(server);
        enum lease_state state = lease_check(&server->lease, server->programs.n_running > 0);
        if (state != LEASE_RUNS)
            end_with_lease(server, state);
    }
}

static struct server the_server __attribute__((aligned(4096))); /* too large for a stack */

static _Noreturn void live(void)
{
    run_loop(&the_server);
}

char *serve_stack_end(void)
{
    return the_server.stack + sizeof(the_server.stack);
}

_Noreturn void serve_refuse(int sock, const struct carrel_error *err)
{
    const struct wire_message message = { .kind = WIRE_FAILED, .error = *err };

    (void)wire_send(sock, &message, NULL, 0, 0); /* else the host has exited */
    _exit(1);
}

_Noreturn void serve(const struct serving *with)
{
    const struct wire_message ready = { .kind = WIRE_READY };
    struct server *server = &the_server;
    struct carrel_error err = { 0 };

    server->with = *with;
    server->lease = LEASE_INIT;
    server->freezer = -1;
    if (prepare(server, &err) < 0)
        serve_refuse(with->sock, &err);
    if (with->stays)
        set_tie(server);
    answer(server, &ready, NULL, 0);
    if (with->stays) /* before a program runs: removes data of the creator */
        move_and_live(server);
    live();
}
