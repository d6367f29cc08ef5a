/*
 * pace.h - how much processor time the host spends on a program's output.
 *
 * Copying a flood costs the host more than it costs the program, and no cgroup counts it for
 * the sandbox. So the reader rests when it has used more than a quarter of the sandbox's
 * processor limit; meanwhile the pipe is full, and the program waits.
 */
#pragma once
#include <stdint.h>

struct pace {
    uint64_t share_milli; /* of a processor */
    uint64_t seen_ns;     /* the last look */
    uint64_t seen_cpu_ns;
    uint64_t debt_ns; /* processor time that was used and not yet earned */
};

/* `cpu_milli` is the sandbox's limit. */
void pace_begin(struct pace *pace, uint64_t cpu_milli);

/* Until when the calling thread should rest, by clock_ns(); 0: it need not. */
uint64_t pace_look(struct pace *pace);

/* The same at a given moment, for tests. */
uint64_t pace_look_at(struct pace *pace, uint64_t now_ns, uint64_t used_ns);
