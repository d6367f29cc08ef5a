/*
 * loop.h - one thread's event loop: descriptors, timers, signals, children, deferred work.
 *
 * Sources are members of their owner's struct, which a callback finds with container_of(). The
 * loop allocates nothing and locks nothing, so it also works in a child that is a copy of a
 * process with many threads. A source may be changed or stopped by any callback, including its
 * own; it must be stopped before its memory or its descriptor goes away. (A closed descriptor
 * that another process still has would stay in the epoll set.)
 *
 * A callback returns 0, or a negative errno, which ends loop_turn() and loop_run() with it.
 */
#pragma once
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/types.h>

struct carrel_error;
struct signalfd_siginfo;

#define LOOP_BATCH 16

struct loop {
    int epoll;
    struct loop_io *always;               /* ready at each turn: epoll takes no regular files */
    struct loop_timer *first, *last;      /* by time */
    struct loop_task *tasks, **tasks_end; /* deferred */
    struct epoll_event batch[LOOP_BATCH]; /* of this turn */
    int n_batch, at;
    struct loop_io *next_always; /* of this turn */
    bool is_stopped;
};

int loop_init(struct loop *loop, struct carrel_error *err);
void loop_finish(struct loop *loop); /* one that was never initialised must be all zero */

/* Waits for the next events, and calls back for each. */
int loop_turn(struct loop *loop, struct carrel_error *err);

/* Turns until loop_stop(). */
int loop_run(struct loop *loop, struct carrel_error *err);
void loop_stop(struct loop *loop);

/* --- descriptors --- */

struct loop_io;
typedef int loop_io_call(struct loop_io *io, uint32_t events, struct carrel_error *err);

struct loop_io {
    struct loop *loop;
    loop_io_call *call;
    int fd;  /* -1: not watched */
    int own; /* a duplicate of `fd`, if that was watched already; -1: none */
    uint32_t events;
    bool is_always;
    struct loop_io *next;
};

void loop_io_init(struct loop_io *io, struct loop *loop, loop_io_call *call);

/*
 * Watches `fd`, instead of what it watched, for EPOLLIN, EPOLLOUT and the like. EPOLLHUP and
 * EPOLLERR are always reported, unless `events` is 0: then nothing is. fd -1: nothing.
 */
int loop_io_watch(struct loop_io *io, int fd, uint32_t events, struct carrel_error *err);
void loop_io_stop(struct loop_io *io);

/* --- timers --- */

struct loop_timer;
typedef int loop_timer_call(struct loop_timer *timer, struct carrel_error *err);

struct loop_timer {
    struct loop *loop;
    loop_timer_call *call;
    uint64_t due_ns; /* clock_ns(); CLOCK_NEVER: not set */
    struct loop_timer *prev, *next;
};

void loop_timer_init(struct loop_timer *timer, struct loop *loop, loop_timer_call *call);

/* Calls back once, at that time or soon after; CLOCK_NEVER: not at all. */
void loop_timer_set(struct loop_timer *timer, uint64_t due_ns);

/* --- deferred work --- */

struct loop_task;
typedef int loop_task_call(struct loop_task *task, struct carrel_error *err);

struct loop_task {
    loop_task_call *call;
    struct loop_task *next;
    bool is_due;
};

/* Calls back once, after the other events of this turn. Again before that: still once. */
void loop_defer(struct loop *loop, struct loop_task *task);
void loop_task_stop(struct loop *loop, struct loop_task *task);

/* --- signals and children --- */

struct loop_signals;
typedef int loop_signals_call(struct loop_signals *signals, const struct signalfd_siginfo *info,
        struct carrel_error *err);

struct loop_signals {
    struct loop_io io;
    loop_signals_call *call;
};

/* The caller has blocked them. */
int loop_signals_begin(struct loop_signals *signals, struct loop *loop, const sigset_t *set,
        loop_signals_call *call, struct carrel_error *err);
void loop_signals_end(struct loop_signals *signals);

struct loop_child;
typedef int loop_child_call(
        struct loop_child *child, int wait_status, struct carrel_error *err);

struct loop_child {
    struct loop_io io;
    pid_t pid;
    loop_child_call *call;
};

/* Reaps a child of this process when it has ended, and calls back once. */
int loop_child_begin(struct loop_child *child, struct loop *loop, pid_t pid,
        loop_child_call *call, struct carrel_error *err);
void loop_child_end(struct loop_child *child); /* it is not reaped */
