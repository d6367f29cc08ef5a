/* supervisor.c - see supervisor.h for its purpose and its peers. */
#include "runtime/process/supervisor.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/packet.h"
#include "base/process.h"
#include "base/tree.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static int take_descriptors(struct supervisor *s, struct carrel_error *err)
{
    int *const kept[] = { &s->control, &s->events, &s->owner, &s->parent, &s->workspace };
    unsigned from = 0;

    for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
        if (*kept[i] < 0)
            continue;
        *kept[i] = fcntl(*kept[i], F_DUPFD_CLOEXEC, 3);
        if (*kept[i] < 0)
            return err_set_errno(err, -errno, "keep a descriptor");
    }
    for (;;) {
        unsigned next = ~0U; /* the lowest kept descriptor that is not below `from` */
        for (size_t i = 0; i < ARRAY_LEN(kept); i++)
            if (*kept[i] >= 0 && (unsigned)*kept[i] >= from && (unsigned)*kept[i] < next)
                next = (unsigned)*kept[i];
        unsigned last = next == ~0U ? ~0U : next - 1;
        if (next > from && close_range(from, last, 0) < 0)
            return err_set_errno(err, -errno, "close inherited descriptors");
        if (next == ~0U)
            break;
        from = next + 1;
    }
    for (int i = 0; i < 3; i++) /* so that no descriptor we receive has one of these numbers */
        if (open("/dev/null", O_RDWR | O_NOCTTY | O_CLOEXEC) != i)
            return err_set_errno(err, -errno, "open /dev/null");
    return 0;
}

static int take_signals(struct supervisor *s, struct carrel_error *err)
{
    sigset_t child;

    signals_reset();
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    s->signals = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    return s->signals < 0 ? err_set_errno(err, -errno, "signalfd") : 0;
}

/* Being apart from the caller: its terminal, its directory and its file modes are not ours. */
static int stand_apart(struct supervisor *s, struct carrel_error *err)
{
    (void)s;
    (void)prctl(PR_SET_NAME, "carrel-process"); /* only for those who look at ps */
    (void)umask(022);
    if (setsid() < 0 || chdir("/") < 0)
        return err_set_errno(err, -errno, "leave the caller's session");
    /* Programs of the same user must not read the caller's memory, of which this is a copy. */
    if (prctl(PR_SET_DUMPABLE, 0) < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
        return err_set_errno(err, -errno, "become the programs' reaper");
    s->children = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
    if (s->children < 0) /* could not kill them all */
        return err_set(
                err, -ENOTSUP, "/proc/thread-self/children is missing; is /proc mounted?");
    return 0;
}

/* Last: from here on there is something to remove. */
static int make_directory(struct supervisor *s, struct carrel_error *err)
{
    if (mkdirat(s->parent, s->name, 0700) < 0)
        return err_set_errno(err, -errno, "make the directory '%s'", s->name);
    if (s->workspace >= 0)
        return 0;
    s->workspace = openat(s->parent, s->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (s->workspace >= 0)
        return 0;
    int r = -errno;
    (void)unlinkat(s->parent, s->name, AT_REMOVEDIR); /* the error below is what matters */
    return err_set_errno(err, r, "open the directory '%s'", s->name);
}

static struct supervised *find(struct supervisor *s, uint32_t id)
{
    for (size_t i = 0; i < SUPERVISOR_PROCESSES; i++)
        if (s->processes[i].id == id)
            return &s->processes[i];
    return NULL;
}

/* Takes every child that has ended; orphans that came to us go without a word. */
static int reap(struct supervisor *s)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        for (size_t i = 0; i < SUPERVISOR_PROCESSES; i++) {
            struct supervised *process = &s->processes[i];
            if (process->id && process->pid == pid) {
                process->pid = 0;
                process->wait_status = status;
            }
        }
    }
    return pid < 0 ? -errno : 0;
}

/* Sends the notices that are due. Returns whether some are left because there is no room. */
static bool report(struct supervisor *s)
{
    for (size_t i = 0; i < SUPERVISOR_PROCESSES; i++) {
        struct supervised *process = &s->processes[i];
        const struct notice notice = { process->id, process->wait_status };
        if (!process->id || process->pid)
            continue;
        if (packet_send(s->events, &notice, sizeof(notice), NULL, 0, MSG_DONTWAIT) == -EAGAIN)
            return true;
        *process = (struct supervised){ 0 };
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
static void end_child(pid_t pid)
{
    pid_t group = getpgid(pid);

    if (group > 0 && group != getpgrp())
        (void)kill(-group, SIGKILL); /* ESRCH: it has ended meanwhile */
    (void)kill(pid, SIGKILL);
}

/* One reading of the list of children, "12 345 6789 ". */
static void end_children(struct supervisor *s)
{
    char text[4096];
    off_t at = 0;
    pid_t pid = 0;
    ssize_t n;

    while ((n = pread(s->children, text, sizeof(text), at)) > 0) {
        at += n;
        for (ssize_t i = 0; i < n; i++) {
            if (text[i] >= '0' && text[i] <= '9') {
                pid = pid * 10 + (text[i] - '0');
            } else if (pid > 0) {
                end_child(pid);
                pid = 0;
            }
        }
    }
}

static void end_all(struct supervisor *s)
{
    const struct timespec pause = { .tv_nsec = 10000000 };
    sigset_t child;

    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    (void)setpriority(PRIO_PROCESS, 0, -20); /* against a crowd; only root may, others try on */
    for (;;) {
        end_children(s);
        if (reap(s) == -ECHILD)
            break;
        (void)sigtimedwait(&child, NULL, &pause); /* until the next one dies */
    }
    memset(s->processes, 0, sizeof(s->processes));
}

static void measure(struct sandbox_usage *usage)
{
    struct rusage all;
    struct rusage self;

    *usage = USAGE_INIT;
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

/* Waits until the program runs or has failed to; gives up when the owner does. */
static int await_exec(struct supervisor *s, int status, struct carrel_error *err)
{
    struct pollfd fds[] = {
        { .fd = status, .events = POLLIN },
        { .fd = s->control, .events = 0 }, /* a hangup comes unasked */
        { .fd = s->owner, .events = POLLIN },
    };

    while (!fds[0].revents && !fds[1].revents && !fds[2].revents)
        if (poll(fds, ARRAY_LEN(fds), -1) < 0 && errno != EINTR)
            return err_set_errno(err, -errno, "wait for the program's start");
    if (!fds[0].revents)
        return 0; /* no one will read the answer */
    struct carrel_error failure;
    ssize_t n = fd_read_all(status, &failure, sizeof(failure));
    if (n == (ssize_t)sizeof(failure)) {
        *err = failure;
        return failure.code;
    }
    return 0;
}

static int start(struct supervisor *s, const struct order *order, const int *fds,
        struct answer *answer, struct carrel_error *err)
{
    const struct launch launch = {
        .payload = fds[0],
        .streams = { fds[1], fds[2], fds[3] },
        .has_tty = order->has_tty,
        .workspace = s->workspace,
        .parent = getpid(),
        .rlimits = s->rlimits,
        .n_rlimits = s->n_rlimits,
    };
    struct supervised *slot = find(s, 0);
    int status[2];

    if (!slot || s->last_id == UINT32_MAX)
        return err_set(err, -EAGAIN, "at most %d processes at one time in one sandbox",
                SUPERVISOR_PROCESSES);
    if (pipe2(status, O_CLOEXEC) < 0)
        return err_set_errno(err, -errno, "make a pipe");
    AUTO(fd_close) int reading = status[0];
    pid_t pid = _Fork();
    if (pid == 0)
        launch_exec(&launch, status[1]);
    int r = -errno;
    fd_close(status[1]); /* else we would never see its end */
    if (pid < 0)
        return err_set_errno(err, r, "start a process");
    r = await_exec(s, reading, err);
    if (r < 0) {
        (void)kill(pid, SIGKILL);
        (void)waitpid(pid, NULL, 0);
        return r;
    }
    answer->process = ++s->last_id;
    answer->pid = pid;
    *slot = (struct supervised){ .id = answer->process, .pid = pid };
    return 0;
}

static void obey(struct supervisor *s, const struct order *order, const int *fds, int n_fds)
{
    struct answer answer = { .usage = USAGE_INIT };
    struct supervised *process;

    switch (order->kind) {
    case ORDER_START:
        if (n_fds == ORDER_FDS)
            (void)start(s, order, fds, &answer, &answer.error);
        else
            (void)err_set(&answer.error, -EPROTO, "a start without descriptors");
        break;
    case ORDER_SIGNAL:
        process = find(s, order->process);
        if (order->process && process && process->pid)
            (void)kill(-process->pid, order->signal); /* it leads its group */
        break;
    case ORDER_STOP:
        end_all(s);
        measure(&answer.usage);
        break;
    }
    /* A failure means that the owner is gone, which poll() will say. */
    (void)packet_send(s->control, &answer, sizeof(answer), NULL, 0, 0);
}

/* Returns false when the owner is gone. */
static bool take_order(struct supervisor *s)
{
    struct order order;
    int fds[ORDER_FDS];

    int n = packet_receive(s->control, &order, sizeof(order), fds, ORDER_FDS, MSG_DONTWAIT);
    if (n < 0)
        return n == -EAGAIN;
    obey(s, &order, fds, n);
    for (int i = 0; i < n; i++)
        fd_close(fds[i]);
    return true;
}

static void serve(struct supervisor *s)
{
    for (;;) {
        (void)reap(s);
        bool is_waiting_for_room = report(s);
        struct pollfd fds[] = {
            { .fd = s->control, .events = POLLIN },
            { .fd = s->owner, .events = POLLIN },
            { .fd = s->signals, .events = POLLIN },
            { .fd = s->events, .events = is_waiting_for_room ? POLLOUT : 0 },
        };
        if (poll(fds, ARRAY_LEN(fds), -1) < 0 && errno != EINTR)
            return;
        if (fds[2].revents) {
            struct signalfd_siginfo info;
            (void)read(
                    s->signals, &info, sizeof(info)); /* one says it all: we reap every one */
        }
        if (fds[1].revents || (fds[0].revents && !take_order(s)))
            return;
    }
}

_Noreturn void supervisor_run(struct supervisor *s)
{
    static int (*const steps[])(struct supervisor *, struct carrel_error *) = {
        take_descriptors,
        take_signals,
        stand_apart,
        make_directory,
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
