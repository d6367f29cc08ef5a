/*
 * keeper_alive.h - whether a keeper that does not answer is stuck.
 *
 * A keeper may have much work to do, for this client or for others before it, so the time alone
 * says nothing. It is given up only if it is stopped (state T), or has been asleep without
 * using CPU for a minute during a request that should take seconds.
 */
#pragma once
#include "core/keeper/wire.h"
#include <stdint.h>
#include <sys/types.h>

struct carrel_error;
struct sandbox_process;

#define KEEPER_CHECK_MS 10000 /* between two checks, while there is no answer */

struct keeper_check {
    uint64_t cpu_ms;   /* that it had used at the last check */
    unsigned n_asleep; /* checks in a row that found it asleep, with no CPU used */
};
#define KEEPER_CHECK_INIT                                                                      \
    {                                                                                          \
        .cpu_ms = UINT64_MAX                                                                   \
    }

/* Why the keeper is given up, or NULL: go on waiting. */
const char *keeper_is_stuck(struct keeper_check *check, const struct sandbox_process *keeper,
        enum keeper_kind kind);

/* The same for the process `pid`, which may be 0: unknown. -ETIMEDOUT: it is stuck. */
int keeper_check_alive(
        struct keeper_check *check, pid_t pid, enum keeper_kind kind, struct carrel_error *err);

/* -ETIMEDOUT, in the words of keeper_check_alive(). */
int keeper_give_up(pid_t pid, const char *why, struct carrel_error *err);
