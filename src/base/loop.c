/* loop.c - epoll, a list of timers, a list of deferred work. */
#include "base/loop.h"
#include "base/auto.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

int loop_init(struct loop *loop, struct carrel_error *err)
{
    *loop = (struct loop){ .epoll = epoll_create1(EPOLL_CLOEXEC) };
    if (loop->epoll < 0)
        return err_set_errno(err, -errno, "epoll_create1");
    loop->tasks_end = &loop->tasks;
    return 0;
}

void loop_finish(struct loop *loop)
{
    if (loop->tasks_end) /* it was initialised */
        fd_close(loop->epoll);
    *loop = (struct loop){ 0 };
}

/* --- descriptors --- */

void loop_io_init(struct loop_io *io, struct loop *loop, loop_io_call *call)
{
    *io = (struct loop_io){ .loop = loop, .call = call, .fd = -1, .own = -1 };
}

/* What was reported already, and not handled yet, is forgotten. */
static void forget(struct loop_io *io)
{
    struct loop *loop = io->loop;

    for (int i = loop->at; i < loop->n_batch; i++)
        if (loop->batch[i].data.ptr == io)
            loop->batch[i].data.ptr = NULL;
    if (loop->next_always == io)
        loop->next_always = io->next;
}

static void remove_always(struct loop_io *io)
{
    struct loop_io **at = &io->loop->always;

    while (*at != io)
        at = &(*at)->next;
    *at = io->next;
    io->is_always = false;
}

void loop_io_stop(struct loop_io *io)
{
    if (!io->loop || io->fd < 0)
        return;
    forget(io);
    if (io->is_always)
        remove_always(io);
    else /* fails if the descriptor was closed: then nothing is left to remove */
        (void)epoll_ctl(io->loop->epoll, EPOLL_CTL_DEL, io->own >= 0 ? io->own : io->fd, NULL);
    fd_close(fd_steal(&io->own));
    io->fd = -1;
    io->events = 0;
}

/*
 * epoll says EPERM of what has no wait queue: a file, a directory, some devices. Of a pipe, a
 * socket, a pidfd or a terminal EPERM is a refusal, and a source that claims to be ready would
 * block.
 */
static bool is_always_ready(int fd)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return false;
    return S_ISREG(st.st_mode) || S_ISDIR(st.st_mode) || S_ISBLK(st.st_mode) ||
           (S_ISCHR(st.st_mode) && !isatty(fd));
}

static int add(struct loop_io *io, int fd, struct epoll_event *event)
{
    if (epoll_ctl(io->loop->epoll, EPOLL_CTL_ADD, fd, event) == 0)
        return 0;
    if (errno == EPERM) {
        if (!is_always_ready(fd))
            return -EPERM;
        io->next = io->loop->always;
        io->loop->always = io;
        io->is_always = true;
        return 0;
    }
    if (errno != EEXIST)
        return -errno;
    /* Another source watches the same descriptor: a terminal is input and output. */
    io->own = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (io->own < 0 || epoll_ctl(io->loop->epoll, EPOLL_CTL_ADD, io->own, event) < 0)
        return -errno;
    return 0;
}

int loop_io_watch(struct loop_io *io, int fd, uint32_t events, struct carrel_error *err)
{
    struct epoll_event event = { .events = events, .data.ptr = io };

    assert(io->loop);
    if (fd < 0 || events == 0) {
        loop_io_stop(io);
        return 0;
    }
    if (io->fd == fd && io->events == events)
        return 0;
    int r = 0;
    if (io->fd != fd) {
        loop_io_stop(io);
        r = add(io, fd, &event);
    } else if (!io->is_always) {
        forget(io);
        if (epoll_ctl(io->loop->epoll, EPOLL_CTL_MOD, io->own >= 0 ? io->own : fd, &event) < 0)
            r = -errno;
    }
    if (r < 0) {
        fd_close(fd_steal(&io->own));
        return err_set_errno(err, r, "watch a descriptor");
    }
    io->fd = fd;
    io->events = events;
    return 0;
}

/* --- timers --- */

void loop_timer_init(struct loop_timer *timer, struct loop *loop, loop_timer_call *call)
{
    *timer = (struct loop_timer){ .loop = loop, .call = call, .due_ns = CLOCK_NEVER };
}

static void unlink_timer(struct loop_timer *timer)
{
    struct loop *loop = timer->loop;

    *(timer->prev ? &timer->prev->next : &loop->first) = timer->next;
    *(timer->next ? &timer->next->prev : &loop->last) = timer->prev;
    timer->prev = timer->next = NULL;
}

void loop_timer_set(struct loop_timer *timer, uint64_t due_ns)
{
    struct loop *loop = timer->loop;

    if (!loop || timer->due_ns == due_ns)
        return;
    if (timer->due_ns != CLOCK_NEVER)
        unlink_timer(timer);
    timer->due_ns = due_ns;
    if (due_ns == CLOCK_NEVER)
        return;
    /* From the end: most timers are set to run out after those that are there. */
    struct loop_timer *before = loop->last;
    while (before && before->due_ns > due_ns)
        before = before->prev;
    timer->prev = before;
    timer->next = before ? before->next : loop->first;
    *(before ? &before->next : &loop->first) = timer;
    *(timer->next ? &timer->next->prev : &loop->last) = timer;
}

/* At most as many as were due when it began: one that sets itself again cannot block the rest.
 */
static int call_timers(struct loop *loop, struct carrel_error *err)
{
    const uint64_t now_ns = clock_ns();
    size_t n = 0;
    int r = 0;

    for (const struct loop_timer *timer = loop->first; timer && timer->due_ns <= now_ns;
            timer = timer->next)
        n++;
    while (r == 0 && n-- > 0 && loop->first && loop->first->due_ns <= now_ns) {
        struct loop_timer *timer = loop->first;
        loop_timer_set(timer, CLOCK_NEVER);
        r = timer->call(timer, err);
    }
    return r;
}

/* --- deferred work --- */

void loop_defer(struct loop *loop, struct loop_task *task)
{
    if (task->is_due)
        return;
    task->is_due = true;
    task->next = NULL;
    *loop->tasks_end = task;
    loop->tasks_end = &task->next;
}

void loop_task_stop(struct loop *loop, struct loop_task *task)
{
    struct loop_task **at = &loop->tasks;

    if (!task->is_due)
        return;
    while (*at != task)
        at = &(*at)->next;
    *at = task->next;
    if (loop->tasks_end == &task->next)
        loop->tasks_end = at;
    task->is_due = false;
}

/* Only those that were deferred before: the first that is deferred meanwhile ends it. */
static int call_tasks(struct loop *loop, struct carrel_error *err)
{
    size_t n = 0;
    int r = 0;

    for (const struct loop_task *task = loop->tasks; task; task = task->next)
        n++;
    while (r == 0 && n-- > 0 && loop->tasks) {
        struct loop_task *task = loop->tasks;
        loop_task_stop(loop, task);
        r = task->call(task, err);
    }
    return r;
}

/* --- the loop --- */

static int call_batch(struct loop *loop, struct carrel_error *err)
{
    int r = 0;

    while (r == 0 && loop->at < loop->n_batch) {
        const struct epoll_event *event = &loop->batch[loop->at++];
        struct loop_io *io = event->data.ptr;
        if (io)
            r = io->call(io, event->events, err);
    }
    loop->next_always = loop->always;
    while (r == 0 && loop->next_always) {
        struct loop_io *io = loop->next_always;
        loop->next_always = io->next;
        r = io->call(io, io->events & (EPOLLIN | EPOLLOUT), err);
    }
    loop->next_always = NULL;
    loop->n_batch = loop->at = 0;
    return r;
}

int loop_turn(struct loop *loop, struct carrel_error *err)
{
    const bool is_due = loop->always || loop->tasks;
    const uint64_t due_ns = is_due ? 0 : loop->first ? loop->first->due_ns : CLOCK_NEVER;

    loop->at = 0;
    int n = epoll_wait(loop->epoll, loop->batch, LOOP_BATCH, clock_poll_ms(due_ns));
    if (n < 0 && errno != EINTR)
        return err_set_errno(err, -errno, "epoll_wait");
    loop->n_batch = n < 0 ? 0 : n;
    int r = call_batch(loop, err);
    if (r == 0)
        r = call_timers(loop, err);
    return r == 0 ? call_tasks(loop, err) : r;
}

int loop_run(struct loop *loop, struct carrel_error *err)
{
    int r = 0;

    loop->is_stopped = false;
    while (r == 0 && !loop->is_stopped)
        r = loop_turn(loop, err);
    return r;
}

void loop_stop(struct loop *loop)
{
    loop->is_stopped = true;
}

/* --- signals and children --- */

static int on_signal(struct loop_io *io, uint32_t events, struct carrel_error *err)
{
    struct loop_signals *signals = container_of(io, struct loop_signals, io);
    struct signalfd_siginfo info;

    (void)events;
    if (read(io->fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
        return 0;
    return signals->call(signals, &info, err);
}

int loop_signals_begin(struct loop_signals *signals, struct loop *loop, const sigset_t *set,
        loop_signals_call *call, struct carrel_error *err)
{
    AUTO(fd_close) int fd = signalfd(-1, set, SFD_CLOEXEC | SFD_NONBLOCK);

    if (fd < 0)
        return err_set_errno(err, -errno, "signalfd");
    signals->call = call;
    loop_io_init(&signals->io, loop, on_signal);
    int r = loop_io_watch(&signals->io, fd, EPOLLIN, err);
    if (r == 0)
        (void)fd_steal(&fd); /* loop_signals_end() closes it */
    return r;
}

/* The descriptor of a source that has one of its own. */
static void end_own(struct loop_io *io)
{
    int fd = io->loop ? io->fd : -1;

    loop_io_stop(io);
    fd_close(fd);
}

void loop_signals_end(struct loop_signals *signals)
{
    end_own(&signals->io);
}

static int on_child(struct loop_io *io, uint32_t events, struct carrel_error *err)
{
    struct loop_child *child = container_of(io, struct loop_child, io);
    int status;

    (void)events;
    pid_t pid = waitpid(child->pid, &status, WNOHANG);
    if (pid == 0 || (pid < 0 && errno == EINTR))
        return 0;
    loop_child_end(child);
    return pid < 0 ? err_set_errno(err, -errno, "wait for a child")
                   : child->call(child, status, err);
}

int loop_child_begin(struct loop_child *child, struct loop *loop, pid_t pid,
        loop_child_call *call, struct carrel_error *err)
{
    AUTO(fd_close) int fd = (int)syscall(SYS_pidfd_open, pid, 0); /* close-on-exec */

    if (fd < 0)
        return err_set_errno(err, -errno, "pidfd_open");
    child->pid = pid;
    child->call = call;
    loop_io_init(&child->io, loop, on_child);
    int r = loop_io_watch(&child->io, fd, EPOLLIN, err);
    if (r == 0)
        (void)fd_steal(&fd); /* loop_child_end() closes it */
    return r;
}

void loop_child_end(struct loop_child *child)
{
    end_own(&child->io);
}
