/*
 * init.c - pid 1: starts programs, reports their exit, accesses files, reaps orphans.
 *
 * It is in the sandbox's namespaces but protected from its programs: they cannot signal, trace
 * or read it. It is a fork of the caller without exec, so it allocates nothing and takes no
 * locks. When the host exits, the socket ends, init exits, and the kernel kills every process
 * of its namespace.
 */
#include "runtime/local/inside/init.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/payload.h"
#include "base/trim.h"
#include "runtime/local/cgroup/freezer.h"
#include "runtime/local/inside/act_as.h"
#include "runtime/local/inside/init_files.h"
#include "runtime/local/inside/launch.h"
#include "runtime/local/inside/setup.h"
#include "runtime/local/inside/sys.h"
#include "runtime/local/plan.h"
#include "runtime/programs.h"
#include "runtime/runtime.h"
#include "runtime/serving/lease.h"
#include "runtime/serving/netlink.h"
#include "runtime/wire.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/vfs.h>
#include <sys/wait.h>

#define FAREWELL_MS 5000 /* for a host that does not read, when its lease has expired */

#define INIT_STACK ((64U << 10) + 2048) /* it ends within a page, in which the rest follows */

/* Stacks and the data beside them: an idle init uses a single page. */
struct init {
    char launch_stack[SPAWN_STACK];
    char stack[INIT_STACK]; /* first used by the setup's thread, which has exited by then */
    struct plan plan;       /* the part that starting programs needs */
    int sock;
    int events;
    int owner;
    int space_fd;
    int child_fd; /* signalfd for SIGCHLD */
    int listener; /* where programs wait for a netlink socket; -1: none */
    int netlink_most;
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
static void end_frozen(struct init *init)
{
    if (init->freezer < 0)
        return;
    (void)kill(-1, SIGKILL);
    (void)pwrite(init->freezer, FREEZER_THAW, strlen(FREEZER_THAW), 0);
}

/* The only way to exit once programs may run. */
static _Noreturn void leave(struct init *init, int status)
{
    end_frozen(init);
    _exit(status);
}

/*
 * Makes the kernel kill us when our owner exits. Usually the socket tells us, unless we are
 * blocked: by a program that is being started and is stopped by others of its user, by a file
 * system that does not answer, or by a SIGSTOP from outside.
 */
static int tie_to_owner(struct init *init, struct carrel_error *err)
{
    struct pollfd owner = { .fd = init->owner, .events = POLLIN };

    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
        return err_set(err, -EIO, "tie init to its owner: %s", strerrordesc_np(errno));
    if (poll(&owner, 1, 0) > 0)
        leave(init, 0); /* it had exited before */
    return 0;
}

/*
 * Not while programs are frozen so that they cannot die: we must thaw them first. And the owner
 * of a run may be a thread of a larger program, whose exit is not that program's; if that
 * thread exits, we exit with it, which is early but no weaker.
 */
static void set_tie(struct init *init)
{
    int r = 0;

    if (init->plan.stays && init->freezer < 0)
        r = tie_to_owner(init, NULL);
    else if (prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0) < 0 && init->plan.stays)
        r = -errno;
    if (r < 0)
        leave(init, 1); /* cannot happen */
}

/* A change of the fsuid resets it. */
static void set_tie_again(struct init *init)
{
    if (init->plan.stays && init->plan.has_range)
        set_tie(init);
}

/* A host that does not take answers has exited: so do we. */
static void answer(
        struct init *init, const struct wire_message *message, const int *fds, size_t n)
{
    if (wire_send(init->sock, message, fds, n, 0) < 0)
        leave(init, 1);
}

static void answer_failed(struct init *init, const struct carrel_error *err)
{
    struct wire_message message = { .kind = WIRE_FAILED, .error = *err };

    answer(init, &message, NULL, 0);
}

static void describe_space(const struct init *init, struct wire_message *message)
{
    struct statfs st;

    if (fstatfs(init->space_fd, &st) < 0)
        return;
    uint64_t used = st.f_blocks - st.f_bfree;
    if (used > init->skeleton_blocks)
        message->held_bytes = (used - init->skeleton_blocks) * (uint64_t)st.f_bsize;
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

static void describe(const struct init *init, struct wire_message *message)
{
    describe_space(init, message);
    describe_processes(message);
    message->flags |= init->programs.is_alone ? WIRE_ALONE : 0;
}

/* If no program runs any more, the sandbox is idle from now on. */
static void reap(struct init *init)
{
    const bool was_busy = init->programs.n_running > 0;
    struct signalfd_siginfo drained;

    (void)read(init->child_fd, &drained,
            sizeof(drained)); /* only a wake-up; wait4 reports everything */
    programs_reap(&init->programs);
    if (was_busy && init->programs.n_running == 0)
        lease_touch(&init->lease);
}

static void kill_namespace(struct programs *programs)
{
    (void)programs;
    (void)kill(-1, SIGKILL); /* ESRCH: no process except us; wait4 tells the same */
}

static void end_all(struct init *init)
{
    end_frozen(init);
    programs_end(&init->programs, kill_namespace);
}

/* Reports to the host which processes have exited. True: its queue is full, try again. */
static bool report(struct init *init)
{
    for (size_t i = 0; i < init->programs.n; i++) {
        struct program *p = &init->programs.all[i];
        if (!p->has_ended || p->is_reported)
            continue;
        struct wire_message message = {
            .kind = WIRE_EXITED,
            .process = p->id,
            .value = p->status,
            .flags = p->is_with_all ? WIRE_WITH_ALL : 0,
        };
        describe(init, &message);
        int r = wire_send(init->events, &message, NULL, 0, MSG_DONTWAIT);
        if (r == -EAGAIN)
            return true;
        if (r < 0)
            leave(init, 0); /* the host has exited */
        programs_reported(p);
    }
    return false;
}

/* A terminal of the sandbox's own devpts; the slave belongs to the program's user. */
static int open_terminal(struct init *init, const struct wire_message *request, int *slave,
        struct carrel_error *err)
{
    int r = act_as(&init->plan, request->uid, request->gid, err);
    if (r < 0)
        return r;
    AUTO(fd_close) int master = open("/dev/pts/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
    act_as_init(&init->plan);
    set_tie_again(init);
    if (master < 0)
        return err_set(err, -EIO, "open a terminal: %s", strerrordesc_np(errno));
    *slave = spawn_terminal(master, request->rows, request->cols, err);
    return *slave < 0 ? *slave : fd_steal(&master);
}

static pid_t launch_with_owner(
        struct init *init, struct launch *launch, struct carrel_error *err)
{
    int r = tie_to_owner(init, err);
    if (r < 0)
        return r;
    pid_t pid = launch_process(launch, err);
    set_tie(init);
    return pid;
}

static void start(struct init *init, struct wire_message *request, const int *fds, int n_fds)
{
    struct carrel_error err = { 0 };
    struct payload payload = { 0 };
    bool has_tty = request->flags & WIRE_TTY;
    AUTO(fd_close) int master = -1;
    AUTO(fd_close) int slave = -1;
    struct launch launch = {
        .plan = &init->plan,
        .uid = request->uid,
        .gid = request->gid,
        .base.has_tty = has_tty,
        .base.stack_end = init->launch_stack + sizeof(init->launch_stack),
    };
    struct program *place = programs_place(&init->programs);
    pid_t pid = -1;

    int r = wire_payload(request, &fds, &n_fds, &payload);
    if (r == 0 && n_fds != (has_tty ? 0 : 3))
        r = -EPROTO;
    if (r < 0)
        (void)err_set(&err, -EIO, "read the start request: %s", strerrordesc_np(-r));
    else if (!place)
        r = err_set(&err, -EAGAIN, "%d processes are running already", PROGRAMS_MOST);
    else if (has_tty)
        r = master = open_terminal(init, request, &slave, &err);
    if (r >= 0) {
        for (int i = 0; i < 3; i++)
            launch.base.fds[i] = has_tty ? slave : fds[i];
        launch.base.cwd = payload.text;
        launch.base.argv = payload.argv;
        launch.base.env = payload.env;
        r = pid = launch_with_owner(init, &launch, &err);
    }
    payload_unmap(&payload);
    if (r < 0) {
        answer_failed(init, &err);
        return;
    }

    struct wire_message message = {
        .kind = WIRE_STARTED,
        .process = programs_add(&init->programs, place, pid, request->flags & WIRE_LAST),
        .value = pid,
    };
    answer(init, &message, &master, has_tty ? 1 : 0);
}

static void serve_file(struct init *init, struct wire_message *request, const int *fds, int n)
{
    struct wire_message message = { .kind = WIRE_FILE_DONE };
    struct carrel_error err = { 0 };
    AUTO(fd_close) int fd = -1;

    int r = init_file(&init->plan, request, fds, n, &message.file, &fd, &err);
    set_tie_again(init);
    if (r < 0)
        answer_failed(init, &err);
    else
        answer(init, &message, &fd, fd >= 0 ? 1 : 0);
}

static void send_signal(struct init *init, const struct wire_message *request)
{
    const struct program *p = programs_find(&init->programs, request->process);

    if (init->is_paused && request->value == SIGCONT)
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

static void terminate(struct init *init, const struct wire_message *request)
{
    struct program *p = programs_find(&init->programs, request->process);

    if (p)
        programs_terminate(p, clock_ns() + request->grace_ns);
}

static void stop(struct init *init)
{
    struct wire_message message = { .kind = WIRE_STOPPED };

    end_all(init);
    describe(init, &message);
    answer(init, &message, NULL, 0);
}

static void answer_done(struct init *init)
{
    const struct wire_message message = { .kind = WIRE_DONE };

    answer(init, &message, NULL, 0);
}

static void set_lease(struct init *init, const struct wire_message *request)
{
    struct carrel_error err = { 0 };

    if (lease_set(&init->lease, request->lease_end_ns, request->idle_ns, &err) < 0)
        answer_failed(init, &err);
    else
        answer_done(init);
}

static void take_freezer(struct init *init, int *fd)
{
    fd_close(init->freezer);
    init->freezer = fd_steal(fd);
    set_tie(init);
    answer_done(init);
}

static void set_paused(struct init *init, bool is_paused)
{
    init->is_paused = is_paused;
    (void)kill(-1, is_paused ? SIGSTOP : SIGCONT); /* ESRCH: there is no other process */
    answer_done(init);
}

static void serve(struct init *init)
{
    struct wire_message request;
    int fds[WIRE_MAX_FDS];

    int n = wire_receive(init->sock, &request, fds, MSG_DONTWAIT);
    if (n == -EAGAIN)
        return;
    if (n < 0)
        leave(init, 0); /* the host has exited */
    lease_touch(&init->lease);
    if (request.kind == WIRE_START)
        start(init, &request, fds, n);
    else if (request.kind == WIRE_FILE)
        serve_file(init, &request, fds, n);
    else if (request.kind == WIRE_SIGNAL)
        send_signal(init, &request);
    else if (request.kind == WIRE_TERMINATE)
        terminate(init, &request);
    else if (request.kind == WIRE_STOP)
        stop(init);
    else if (request.kind == WIRE_LEASE)
        set_lease(init, &request);
    else if (request.kind == WIRE_FREEZER)
        take_freezer(init, &fds[0]);
    else if (request.kind == WIRE_PAUSE || request.kind == WIRE_RESUME)
        set_paused(init, request.kind == WIRE_PAUSE);
    for (int i = 0; i < n; i++)
        fd_close(fds[i]);
}

/* A sandbox with its own network namespace may have the full number; on the host's, a share. */
static int most_netlinks(const struct plan *plan)
{
    int n = plan->has_netns ? 0 : netlink_count();

    return n < 0 ? 0 : n + (plan->has_netns ? NETLINK_MOST : NETLINK_MOST_MORE);
}

static int prepare(struct init *init, struct carrel_error *err)
{
    sigset_t set;
    struct statfs st;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGCHLD);
    init->child_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (init->child_fd < 0)
        return err_set_errno(err, -errno, "signalfd");
    if (fstatfs(init->space_fd, &st) < 0)
        return err_set_errno(err, -errno, "measure the private space");
    init->skeleton_blocks = st.f_blocks - st.f_bfree;
    return 0;
}

/* Waits until the host has taken a report. False: it does not. */
static bool await_host(const struct init *init, int wait_ms)
{
    struct pollfd watch[] = {
        { .fd = init->events, .events = POLLOUT },
        { .fd = init->owner, .events = POLLIN },
    };

    return poll(watch, ARRAY_LEN(watch), wait_ms) > 0 && watch[0].revents && !watch[1].revents;
}

/* The process with which the sandbox ends has exited. */
static _Noreturn void end_with_last(struct init *init)
{
    end_all(init);
    while (report(init) && await_host(init, -1))
        ;
    leave(init, 0);
}

/* The host may not be reading: everything that matters is done before the report. */
static _Noreturn void end_with_lease(struct init *init, enum lease_state why)
{
    struct wire_message message = { .kind = WIRE_GONE, .value = (int32_t)why };

    reap(init); /* those that exited before */
    for (size_t i = 0; i < init->programs.n; i++)
        init->programs.all[i].is_with_all = !init->programs.all[i].has_ended;
    end_all(init);
    while (report(init) && await_host(init, FAREWELL_MS))
        ;
    describe(init, &message);
    while (wire_send(init->events, &message, NULL, 0, MSG_DONTWAIT) == -EAGAIN &&
            await_host(init, FAREWELL_MS))
        ;
    leave(init, 0);
}

static _Noreturn void live(void);

/* Releases the memory it was forked with, once, and restarts the loop below. */
static _Noreturn void move_and_live(struct init *init)
{
    init->has_moved = true;
    trim_move_stack(init->stack, sizeof(init->stack), live);
}

/* No event for a while, as most of the time. */
static void rest(struct init *init)
{
    if (!init->has_moved)
        move_and_live(init);
    trim_own_stack(init->launch_stack, sizeof(init->launch_stack) + INIT_STACK);
}

static _Noreturn void run_loop(struct init *init)
{
    for (;;) {
        bool has_backlog = report(init);
        struct pollfd watch[] = {
            { .fd = init->sock, .events = POLLIN },
            { .fd = init->child_fd, .events = POLLIN },
            { .fd = init->owner, .events = POLLIN },
            { .fd = init->events, .events = has_backlog ? POLLOUT : 0 },
            { .fd = init->lease.timer, .events = POLLIN },
            { .fd = init->listener, .events = POLLIN },
        };
        const uint64_t kill_ns = programs_next_kill(&init->programs);
        int wait_ms = kill_ns != CLOCK_NEVER ? clock_poll_ms(kill_ns)
                      : init->may_rest       ? TRIM_AFTER_MS
                                             : -1;
        int n = poll(watch, ARRAY_LEN(watch), wait_ms);
        const bool has_kill = n >= 0 && kill_ns != CLOCK_NEVER && clock_ns() >= kill_ns;
        if (has_kill)
            programs_kill(&init->programs);
        if (n == 0 && kill_ns == CLOCK_NEVER)
            rest(init);
        init->may_rest = n > 0 || kill_ns != CLOCK_NEVER;
        if (n <= 0 && !has_kill)
            continue; /* EINTR */
        if (watch[2].revents)
            leave(init, 0); /* the host has exited, even if another process holds its sockets */
        if (watch[1].revents || has_kill) /* including processes that waited for the kill */
            reap(init);
        if (init->programs.is_over)
            end_with_last(init);
        if (watch[5].revents)
            netlink_answer(init->listener, init->netlink_most);
        if (watch[0].revents)
            serve(init);
        enum lease_state state = lease_check(&init->lease, init->programs.n_running > 0);
        if (state != LEASE_RUNS)
            end_with_lease(init, state);
    }
}

static struct init init __attribute__((aligned(4096))); /* too large for a stack */

static _Noreturn void live(void)
{
    run_loop(&init);
}

_Noreturn void init_main(struct setup *setup)
{
    struct carrel_error err = { 0 };

    init.plan = plan_for_programs(setup->plan);
    init.lease = LEASE_INIT;
    init.freezer = -1;
    setup->stack_end = init.stack + sizeof(init.stack);
    init.netlink_most = most_netlinks(setup->plan); /* before the host's /proc is unmounted */
    int r = setup_run(setup, &err);
    init.sock = setup->sock;
    init.events = setup->events;
    init.owner = setup->owner;
    init.space_fd = setup->space_fd;
    init.listener = setup->listener;
    if (r == 0)
        r = prepare(&init, &err);
    if (r < 0) {
        answer_failed(&init, &err);
        _exit(1);
    }
    if (init.plan.stays)
        set_tie(&init);
    struct wire_message ready = { .kind = WIRE_READY };
    answer(&init, &ready, NULL, 0);
    if (init.plan.stays) /* before a program runs: removes data of the creator */
        move_and_live(&init);
    live();
}
