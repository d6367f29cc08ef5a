#include "base/auto.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/loop.h"
#include "harness.h"
#include <carrel/error.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

static struct carrel_error err;
static struct loop loop;
static char heard[64]; /* a letter for each call */

static void hear(char letter)
{
    size_t n = strlen(heard);

    CHECK(n + 1 < sizeof(heard));
    heard[n] = letter;
}

/* A descriptor that is called by a letter. */
struct named {
    struct loop_io io;
    char letter;
    uint32_t events;         /* the last that were reported */
    struct loop_io *to_stop; /* by the next call */
};

static int on_named(struct loop_io *io, uint32_t events, struct carrel_error *why)
{
    struct named *named = container_of(io, struct named, io);

    (void)why;
    hear(named->letter);
    named->events = events;
    if (named->to_stop)
        loop_io_stop(named->to_stop);
    return 0;
}

static void watch(struct named *named, char letter, int fd, uint32_t events)
{
    *named = (struct named){ .letter = letter };
    loop_io_init(&named->io, &loop, on_named);
    CHECK_EQ(loop_io_watch(&named->io, fd, events, &err), 0);
}

static void begin(void)
{
    CHECK_EQ(loop_init(&loop, &err), 0);
}

static void make_pipe(int ends[2], const char *text)
{
    CHECK(pipe2(ends, O_CLOEXEC) == 0);
    CHECK(write(ends[1], text, strlen(text)) == (ssize_t)strlen(text));
}

TEST(a_descriptor_is_reported_as_long_as_it_is_ready)
{
    int ends[2];
    struct named in;
    char byte;

    begin();
    make_pipe(ends, "x");
    watch(&in, 'i', ends[0], EPOLLIN);
    CHECK_EQ(loop_turn(&loop, &err), 0);
    CHECK_EQ(loop_turn(&loop, &err), 0);
    CHECK_STR(heard, "ii");
    CHECK(in.events & EPOLLIN);
    CHECK(read(ends[0], &byte, 1) == 1);
    fd_close(ends[1]);
    CHECK_EQ(loop_turn(&loop, &err), 0);
    CHECK(in.events & EPOLLHUP);
    loop_io_stop(&in.io);
    fd_close(ends[0]);
    loop_finish(&loop);
}

TEST(nothing_is_reported_of_a_descriptor_without_events)
{
    int ends[2];
    struct named in;
    struct named out;

    begin();
    make_pipe(ends, "x");
    watch(&in, 'i', ends[0], EPOLLIN);
    watch(&out, 'o', ends[1], EPOLLOUT);
    CHECK_EQ(loop_io_watch(&in.io, ends[0], 0, &err), 0);
    CHECK_EQ(loop_turn(&loop, &err), 0);
    CHECK_STR(heard, "o");
    CHECK_EQ(loop_io_watch(&in.io, ends[0], EPOLLIN, &err), 0);
    CHECK_EQ(loop_io_watch(&out.io, -1, EPOLLOUT, &err), 0);
    CHECK_EQ(loop_turn(&loop, &err), 0);
    CHECK_STR(heard, "oi");
    loop_finish(&loop);
}

TEST(a_source_that_another_one_stopped_is_not_called)
{
    int a[2];
    int b[2];
    struct named first;
    struct named second;

    begin();
    make_pipe(a, "x");
    make_pipe(b, "x");
    watch(&first, 'a', a[0], EPOLLIN);
    watch(&second, 'b', b[0], EPOLLIN);
    first.to_stop = &second.io;
    second.to_stop = &first.io;
    CHECK_EQ(loop_turn(&loop, &err), 0); /* both were ready */
    CHECK_EQ(strlen(heard), 1);
    loop_finish(&loop);
}

TEST(a_regular_file_is_always_ready)
{
    AUTO(fd_close) int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    struct named file;
    struct named again;

    begin();
    watch(&file, 'f', fd, EPOLLIN);
    watch(&again, 'g', fd, EPOLLIN);
    CHECK_EQ(loop_turn(&loop, &err), 0);
    CHECK_STR(heard, "gf");
    again.to_stop = &file.io;
    CHECK_EQ(loop_turn(&loop, &err), 0);
    CHECK_STR(heard, "gfg");
    loop_finish(&loop);
}

TEST(a_descriptor_may_be_watched_twice)
{
    int ends[2];
    struct named one;
    struct named two;

    begin();
    make_pipe(ends, "x");
    watch(&one, '1', ends[0], EPOLLIN);
    watch(&two, '2', ends[0], EPOLLIN);
    CHECK_EQ(loop_turn(&loop, &err), 0);
    CHECK_EQ(strlen(heard), 2);
    loop_io_stop(&two.io);
    CHECK_EQ(loop_turn(&loop, &err), 0);
    CHECK_EQ(heard[2], '1');
    loop_finish(&loop);
}

struct tick {
    struct loop_timer timer;
    char letter;
    uint64_t again_ns; /* set again to this; 0: not */
};

static int on_tick(struct loop_timer *timer, struct carrel_error *why)
{
    struct tick *tick = container_of(timer, struct tick, timer);

    (void)why;
    hear(tick->letter);
    if (tick->letter == 'z')
        loop_stop(&loop);
    if (tick->again_ns)
        loop_timer_set(timer, tick->again_ns);
    return 0;
}

static void set(struct tick *tick, char letter, uint64_t due_ns)
{
    *tick = (struct tick){ .letter = letter };
    loop_timer_init(&tick->timer, &loop, on_tick);
    loop_timer_set(&tick->timer, due_ns);
}

TEST(timers_are_called_in_the_order_of_their_times)
{
    struct tick ticks[4];
    const uint64_t now_ns = clock_ns();

    begin();
    set(&ticks[0], 'c', now_ns + 3000000);
    set(&ticks[1], 'z', now_ns + 4000000);
    set(&ticks[2], 'a', now_ns + 1000000);
    set(&ticks[3], 'x', now_ns + 2000000);
    loop_timer_set(&ticks[3].timer, CLOCK_NEVER);
    CHECK_EQ(loop_run(&loop, &err), 0);
    CHECK_STR(heard, "acz");
    CHECK(clock_ns() >= now_ns + 4000000);
    loop_finish(&loop);
}

TEST(a_timer_that_is_always_due_lets_others_have_their_turn)
{
    int ends[2];
    struct named in;
    struct tick tick;

    begin();
    make_pipe(ends, "x");
    watch(&in, 'i', ends[0], EPOLLIN);
    set(&tick, 't', 1);
    tick.again_ns = 1;
    CHECK_EQ(loop_turn(&loop, &err), 0);
    CHECK_EQ(loop_turn(&loop, &err), 0);
    CHECK_STR(heard, "itit");
    loop_finish(&loop);
}

static struct loop_task later;

static int on_task(struct loop_task *task, struct carrel_error *why)
{
    (void)why;
    hear('t');
    if (strlen(heard) < 3)
        loop_defer(&loop, task);
    return 0;
}

TEST(deferred_work_comes_after_the_other_events_and_once)
{
    int ends[2];
    struct named in;

    begin();
    make_pipe(ends, "x");
    watch(&in, 'i', ends[0], EPOLLIN);
    later.call = on_task;
    loop_defer(&loop, &later);
    loop_defer(&loop, &later);
    CHECK_EQ(loop_turn(&loop, &err), 0);
    CHECK_STR(heard, "it");
    CHECK_EQ(loop_turn(&loop, &err), 0);
    CHECK_STR(heard, "itit");
    loop_defer(&loop, &later);
    loop_task_stop(&loop, &later);
    CHECK_EQ(loop_turn(&loop, &err), 0);
    CHECK_STR(heard, "ititi");
    loop_finish(&loop);
}

static int fails(struct loop_io *io, uint32_t events, struct carrel_error *why)
{
    (void)io;
    (void)events;
    (void)why;
    return -EPROTO;
}

TEST(a_callback_that_fails_ends_the_loop)
{
    int ends[2];
    struct loop_io io;

    begin();
    make_pipe(ends, "x");
    loop_io_init(&io, &loop, fails);
    CHECK_EQ(loop_io_watch(&io, ends[0], EPOLLIN, &err), 0);
    CHECK_EQ(loop_run(&loop, &err), -EPROTO);
    loop_finish(&loop);
}

static int on_signal(struct loop_signals *signals, const struct signalfd_siginfo *info,
        struct carrel_error *why)
{
    (void)signals;
    (void)why;
    CHECK_EQ(info->ssi_signo, SIGUSR1);
    loop_stop(&loop);
    return 0;
}

TEST(a_blocked_signal_is_an_event)
{
    struct loop_signals signals = { 0 };
    sigset_t set;

    begin();
    loop_signals_end(&signals); /* never begun: fine */
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    CHECK(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
    CHECK_EQ(loop_signals_begin(&signals, &loop, &set, on_signal, &err), 0);
    CHECK(raise(SIGUSR1) == 0);
    CHECK_EQ(loop_run(&loop, &err), 0);
    loop_signals_end(&signals);
    loop_finish(&loop);
}

static int status_of_child = -1;

static int on_child(struct loop_child *child, int wait_status, struct carrel_error *why)
{
    (void)child;
    (void)why;
    status_of_child = wait_status;
    loop_stop(&loop);
    return 0;
}

TEST(the_end_of_a_child_is_an_event)
{
    struct loop_child child = { 0 };

    begin();
    pid_t pid = fork();
    if (pid == 0)
        _exit(7);
    CHECK_EQ(loop_child_begin(&child, &loop, pid, on_child, &err), 0);
    CHECK_EQ(loop_run(&loop, &err), 0);
    CHECK(WIFEXITED(status_of_child) && WEXITSTATUS(status_of_child) == 7);
    CHECK(waitpid(pid, NULL, 0) < 0 && errno == ECHILD);
    loop_child_end(&child);
    loop_finish(&loop);
}

TEST(a_loop_that_was_never_begun_can_be_finished)
{
    struct loop none = { 0 };

    loop_finish(&none);
    CHECK(fcntl(STDIN_FILENO, F_GETFD) >= 0 || errno == EBADF);
}
