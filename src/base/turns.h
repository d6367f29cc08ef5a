/*
 * turns.h - how soon a thread gets the processor where others want it, too.
 *
 * It asks for short turns (since Linux 6.12): they come sooner, and are not more than others
 * get. So this needs no privilege, and whoever makes the thread work does not gain by it.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* What the thread starts meanwhile has them, too. Returns what to restore. */
uint64_t turns_hurry(void);
void turns_restore(uint64_t before);

/*
 * The next turn before everybody else, and as long as the thread wants it: for a moment of work
 * that nobody else can make longer. Needs CAP_SYS_NICE or an RLIMIT_RTPRIO of 1, and an
 * ordinary thread; what it starts has ordinary turns. False: nothing has changed.
 */
struct turns {
    uint64_t slice_ns;
    uint64_t flags;
    int nice;
};
bool turns_first(struct turns *before);
void turns_first_no_more(const struct turns *before);

/* For good, and for the thread alone: what it starts has ordinary ones. */
void turns_hurry_alone(void);
