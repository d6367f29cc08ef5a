/*
 * lease.h - when init ends the sandbox on its own.
 *
 * Two deadlines: an end that the host has set, and a maximum idle time. Both use
 * CLOCK_BOOTTIME, which includes suspend. One timer serves both; it is armed for the earlier of
 * the two and not moved when that is postponed: an early expiry only arms it again. So activity
 * costs no system call.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct carrel_error;

struct lease {
    uint64_t end_ns;     /* 0: none */
    uint64_t idle_ns;    /* 0: no idle limit */
    uint64_t touched_ns; /* time of the last activity */
    uint64_t armed_ns;   /* when the timer expires; 0: not armed */
    int timer;           /* readable when it expires; -1: never needed so far */
};
#define LEASE_INIT                                                                             \
    (struct lease)                                                                             \
    {                                                                                          \
        .timer = -1                                                                            \
    }

enum lease_state { LEASE_RUNS, LEASE_ENDED, LEASE_IDLE };

int lease_set(struct lease *lease, uint64_t end_ns, uint64_t idle_ns, struct carrel_error *err);

/* There was activity: the idle time starts again. */
void lease_touch(struct lease *lease);

/* Returns the state and, if the lease continues, makes sure that the timer expires in time. */
enum lease_state lease_check(struct lease *lease, bool is_busy);
