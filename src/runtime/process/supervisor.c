/* supervisor.c - see supervisor.h for its purpose and its peers. */
#include "runtime/process/supervisor.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/packet.h"
#include "base/payload.h"
#include "base/proc_tree.h"
#include "base/process.h"
#include "base/tree.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int take_descriptors(struct supervisor *s, struct carrel_error *err)
{
    const int keep[] = { s->control, s->events, s->owner, s->parent, s->workspace };
    int fd;

    fd_close_all_but(keep, ARRAY_LEN(keep));
    do /* so that no received descriptor gets a number below 3 */
        fd = open("/dev/null", O_RDWR | O_NOCTTY | O_CLOEXEC);
    while (fd >= 0 && fd < 3);
    return fd < 0 ? err_set_errno(err, -errno, "open /dev/null") : 0;
}

/* One event is enough for many children: serve() reaps all. */
static int ignore_signal(struct loop_signals *signals, const struct signalfd_siginfo *info,
        struct carrel_error *err)
{
    (void)signals;
    (void)info;
    (void)err;
    return 0;
}

static int take_signals(struct supervisor *s, struct carrel_error *err)
{
    sigset_t child;

    signals_reset();
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    int r = loop_init(&s->loop, err);
    return r < 0 ? r : loop_signals_begin(&s->on_child, &s->loop, &child, ignore_signal, err);
}

static int become_reaper(struct supervisor *s, struct carrel_error *err)
{
    (void)prctl(PR_SET_NAME, "carrel-process"); /* for ps */
    (void)umask(022);
    /* Programs of the same user must not read this memory, which is a copy of the caller's. */
    if (setsid() < 0 || prctl(PR_SET_DUMPABLE, 0) < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
        return err_set_errno(err, -errno, "become the programs' reaper");
    s->children = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
    if (s->children < 0) /* could not kill them all */
        return err_set(
                err, -ENOTSUP, "/proc/thread-self/children is missing; is /proc mounted?");
    return 0;
}

/* Last: from here on there is something to remove. Programs start where the supervisor is. */
static int enter_workspace(struct supervisor *s, struct carrel_error *err)
{
    if (mkdirat(s->parent, s->name, 0700) < 0)
        return err_set_errno(err, -errno, "make the directory '%s'", s->name);
    if (s->workspace < 0)
        s->workspace =
                openat(s->parent, s->name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (s->workspace >= 0 && fchdir(s->workspace) == 0)
        return 0;
    int r = err_set_errno(err, -errno, "enter the workspace");
    (void)unlinkat(s->parent, s->name, AT_REMOVEDIR); /* the error above is what matters */
    return r;
}

/* Sends pending events. Returns whether some are left because the socket is full. */
static bool report(struct supervisor *s)
{
    for (size_t i = 0; i < s->programs.n; i++) {
        struct program *program = &s->programs.all[i];
        const struct sandbox_event event = {
            .kind = EVENT_EXITED,
            .process = program->id,
            .wait_status = program->status,
        };
        if (!program->has_ended)
            continue;
        if (packet_send(s->events, &event, sizeof(event), NULL, 0, MSG_DONTWAIT) == -EAGAIN)
            return true;
        programs_reported(program);
    }
    return false;
}

/*
 * Kills each child and its process group. A pid cannot be reused: the child is not reaped yet.
 * Its group has no other processes: each program leads a session of its own, and a group never
 * spans two. Killing a whole group at once stops a fork bomb. Children of a killed process
 * become children of the supervisor, so all are dead when there is no child left, and not
 * before. A child with SIGKILL pending cannot fork any more (fork(2) fails first), so each
 * round leaves fewer that can.
 */
static void kill_children(struct programs *programs)
{
    int file = container_of(programs, struct supervisor, programs)->children;
    pid_t pids[1024];

    (void)lseek(file, 0, SEEK_SET);
    int n = proc_tree_children(file, pids, ARRAY_LEN(pids));
    for (int i = 0; i < (n == -E2BIG ? (int)ARRAY_LEN(pids) : n); i++) {
        pid_t group = getpgid(pids[i]);
        if (group > 0 && group != getpgrp())
            (void)kill(-group, SIGKILL); /* ESRCH: it has exited meanwhile */
        (void)kill(pids[i], SIGKILL);
    }
}

static void end_all(struct supervisor *s)
{
    (void)setpriority(PRIO_PROCESS, 0, -20); /* against busy processes; only root may */
    programs_end(&s->programs, kill_children);
    s->programs.n = 0; /* after the end there are no events */
}

static void measure(struct sandbox_usage *usage)
{
    struct rusage all;
    struct rusage self;

    if (getrusage(RUSAGE_CHILDREN, &all) < 0 || getrusage(RUSAGE_SELF, &self) < 0)
        return;
    usage->cpu_ms = (uint64_t)(all.ru_utime.tv_sec + all.ru_stime.tv_sec) * 1000 +
                    (uint64_t)(all.ru_utime.tv_usec + all.ru_stime.tv_usec) / 1000;
    /*
     * Until exec each child is as large as the supervisor, a copy of the caller. A value that
     * is not clearly above that does not describe the programs.
     */
    if (all.ru_maxrss > self.ru_maxrss + self.ru_maxrss / 8)
        usage->peak_memory_bytes = (uint64_t)all.ru_maxrss * 1024;
}

struct start {
    struct spawn base;
    pid_t supervisor;
};

/*
 * A program of root could raise its limits again. Without the two capabilities for that the
 * limits hold, and with no_new_privs it cannot regain them by exec. The signal comes last: a
 * change of credentials may clear it.
 */
static int drop_privileges(struct spawn *spawn)
{
    struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct data[2];
    const uint32_t given_up = (1U << CAP_SYS_RESOURCE) | (1U << CAP_IPC_LOCK);

    if (syscall(SYS_capget, &header, data) < 0)
        return -errno;
    data[0].effective &= ~given_up;
    data[0].permitted &= ~given_up;
    data[0].inheritable &= ~given_up;
    if (syscall(SYS_capset, &header, data) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
            prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
        return -errno;
    return getppid() == container_of(spawn, struct start, base)->supervisor ? 0 : -ESRCH;
}

static int start(struct supervisor *s, const struct order *order, const int *fds, int n_fds,
        struct answer *answer)
{
    struct payload payload = { 0 };
    struct program *slot = programs_place(&s->programs);

    if (!slot)
        return err_set(&answer->error, -EAGAIN,
                "at most %d processes at one time in one sandbox", PROGRAMS_MOST);
    const int n_own = order->has_tty ? 1 : 3;
    int r = n_fds == 1 + n_own + (int)order->n_extra ? payload_map(fds[0], &payload) : -EPROTO;
    if (r < 0)
        return err_set_errno(&answer->error, r, "read the arguments");
    struct start start = { .supervisor = getpid() };
    start.base = (struct spawn){
        .n_fds = 3 + order->n_extra,
        .has_tty = order->has_tty,
        .rlimits = s->rlimits,
        .n_rlimits = s->n_rlimits,
        .cwd = payload.text,
        .argv = payload.argv,
        .env = payload.env,
        .stack_end = s->stack + sizeof(s->stack),
        .drop = drop_privileges,
    };
    for (int i = 0; i < 3 + (int)order->n_extra; i++)
        start.base.fds[i] = fds[i < 3 ? 1 + i % n_own : 1 + n_own + i - 3];
    pid_t pid = spawn_program(&start.base, &answer->error);
    payload_unmap(&payload);
    if (pid < 0)
        return pid;
    answer->process = programs_add(&s->programs, slot, pid, false);
    answer->pid = pid;
    return 0;
}

/* Returns false when the owner has exited. */
static bool obey(struct supervisor *s)
{
    struct answer answer = { .usage = USAGE_INIT };
    struct order order;
    int fds[ORDER_FDS];
    const struct program *program;

    int n = packet_receive(s->control, &order, sizeof(order), fds, ORDER_FDS, MSG_DONTWAIT);
    if (n < 0)
        return n == -EAGAIN;
    switch (order.kind) {
    case ORDER_START:
        (void)start(s, &order, fds, n, &answer);
        break;
    case ORDER_SIGNAL:
        program = programs_find(&s->programs, order.process);
        if (program)
            (void)kill(-program->pid, order.signal); /* it leads its group */
        break;
    case ORDER_STOP:
        end_all(s);
        measure(&answer.usage);
        break;
    }
    for (int i = 0; i < n; i++)
        fd_close(fds[i]);
    /* A failure means that the owner has exited, which poll() will report. */
    (void)packet_send(s->control, &answer, sizeof(answer), NULL, 0, 0);
    return true;
}

static int on_control(struct loop_io *io, uint32_t events, struct carrel_error *err)
{
    struct supervisor *s = container_of(io, struct supervisor, on_control);

    (void)events;
    (void)err;
    if (!obey(s))
        loop_stop(&s->loop);
    return 0;
}

static int on_owner_exit(struct loop_io *io, uint32_t events, struct carrel_error *err)
{
    (void)events;
    (void)err;
    loop_stop(io->loop);
    return 0;
}

/* serve() sends what is pending after each turn. */
static int on_room(struct loop_io *io, uint32_t events, struct carrel_error *err)
{
    (void)io;
    (void)events;
    (void)err;
    return 0;
}

static void serve(struct supervisor *s)
{
    loop_io_init(&s->on_control, &s->loop, on_control);
    loop_io_init(&s->on_owner, &s->loop, on_owner_exit);
    loop_io_init(&s->on_room, &s->loop, on_room);
    int r = loop_io_watch(&s->on_control, s->control, EPOLLIN, NULL);
    if (r == 0)
        r = loop_io_watch(&s->on_owner, s->owner, EPOLLIN, NULL);
    while (r == 0 && !s->loop.is_stopped) {
        programs_reap(&s->programs);
        bool is_waiting_for_room = report(s);
        r = loop_io_watch(&s->on_room, s->events, is_waiting_for_room ? EPOLLOUT : 0, NULL);
        if (r == 0)
            r = loop_turn(&s->loop, NULL);
    }
}

_Noreturn void supervisor_run(struct supervisor *s)
{
    static int (*const steps[])(struct supervisor *, struct carrel_error *) = {
        take_descriptors,
        take_signals,
        become_reaper,
        enter_workspace,
    };
    struct answer ready = { 0 };
    int r = 0;

    for (size_t i = 0; r == 0 && i < ARRAY_LEN(steps); i++)
        r = steps[i](s, &ready.error);
    (void)packet_send(s->control, &ready, sizeof(ready), NULL, 0, 0);
    if (r < 0)
        _exit(EXIT_FAILURE);
    serve(s);
    end_all(s);
    r = tree_remove(s->parent, s->name, NULL); /* there is no receiver for an error */
    _exit(r < 0 ? EXIT_FAILURE : EXIT_SUCCESS);
}
