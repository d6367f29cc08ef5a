/*
 * lease.h - when init ends the sandbox of its own accord.
 *
 * Two clocks: an end that the host has set, and how long nothing has happened. Both are
 * CLOCK_BOOTTIME, which goes on while the machine sleeps. One timer serves both; it is armed
 * for the earlier of the two and not moved when that moves away: an alarm that comes too early
 * only arms it again. So being busy costs no system call.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct carrel_error;

struct lease {
    uint64_t end_ns;     /* 0: none */
    uint64_t idle_ns;    /* 0: may be idle for ever */
    uint64_t touched_ns; /* when something happened last */
    uint64_t armed_ns;   /* when the timer will ring; 0: not armed */
    int timer;           /* readable when it rings; -1: never needed so far */
};
#define LEASE_INIT                                                                             \
    (struct lease)                                                                             \
    {                                                                                          \
        .timer = -1                                                                            \
    }

enum lease_state { LEASE_RUNS, LEASE_ENDED, LEASE_IDLE };

int lease_set(struct lease *lease, uint64_t end_ns, uint64_t idle_ns, struct carrel_error *err);

/* Something has happened: being idle begins anew. */
void lease_touch(struct lease *lease);

/* Says how things stand and, if they go on, sees to it that the timer rings in time. */
enum lease_state lease_check(struct lease *lease, bool is_busy);
