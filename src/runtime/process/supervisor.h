/*
 * supervisor.h - the process that starts, reaps and kills the programs of a sandbox.
 *
 * Programs may fork, change their session and leave their parents. Such orphans are reparented
 * to the nearest ancestor that is a subreaper (prctl(2)). A library must not make its caller
 * one, so each sandbox has a small process that is: whatever descends from it stays its
 * descendant, can be found and can be killed. It kills all on request, and when its owner
 * exits, and then removes the sandbox's directory. Nothing needs cleaning up after a crash.
 *
 * Two sequenced-packet sockets lead to the owner: on `control` each order is answered, on
 * `events` the supervisor sends each struct sandbox_event.
 */
#pragma once
#include "base/loop.h"
#include "runtime/programs.h"
#include "runtime/runtime.h"
#include "runtime/spawn.h"
#include <carrel/error.h>

enum order_kind { ORDER_START, ORDER_SIGNAL, ORDER_STOP };

/* A start carries the payload and three streams, or one terminal; then those beside them. */
#define ORDER_FDS (1 + 3 + PROCESS_EXTRA)
struct order {
    enum order_kind kind;
    uint32_t process;
    int signal;
    bool has_tty;
    unsigned n_extra;
};

/* The first one is sent without an order, when the supervisor is ready or has failed. */
struct answer {
    uint32_t process;
    pid_t pid; /* of a started one */
    struct sandbox_usage usage;
    struct carrel_error error; /* code 0: done */
};

#define SUPERVISOR_RLIMITS 8

/* The owner fills in the first part; the supervisor, a copy, uses all of it. */
struct supervisor {
    int control;
    int events;
    int owner;     /* pidfd: other processes may have inherited the owner's end of `control` */
    int parent;    /* parent of the sandbox's directory */
    int workspace; /* directory to start in; -1: the sandbox's own */
    char name[128];
    struct spawn_rlimit rlimits[SUPERVISOR_RLIMITS];
    size_t n_rlimits;

    int children; /* /proc/thread-self/children */
    struct loop loop;
    struct loop_io on_control;
    struct loop_io on_owner;
    struct loop_io on_room; /* in the socket of events */
    struct loop_signals on_child;
    struct programs programs;
    char stack[SPAWN_STACK];
};

/*
 * Runs in the new process, with every signal blocked, until the owner has exited. It may be the
 * copy of a process with many threads: allocates nothing, locks nothing.
 */
_Noreturn void supervisor_run(struct supervisor *supervisor);
