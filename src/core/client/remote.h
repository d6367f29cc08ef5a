/*
 * remote.h - a living sandbox as a struct sandbox: its operations are requests to its keeper.
 *
 * Stopping it lets go of it: the sandbox stays, and what was started through this connection
 * and not detached ends.
 */
#pragma once
#include "core/keeper/wire.h"
#include "runtime/runtime.h"

struct carrel_error;

struct distant {
    struct sandbox base;
    int sock;     /* requests and answers; base.event_fd has the reports */
    pid_t keeper; /* as the registry had it; 0: not known */
    bool is_mute; /* an answer was given up: what comes later would be taken for another */
    struct keeper_facts facts;
    bool is_detaching;   /* of the next start */
    uint64_t timeout_ms; /* of the next start; 0: the keeper's. Then: what it got */
    uint64_t oom_kills;  /* of the process whose end was reported last */
    uint64_t pids_refused;
    bool is_over_disk;
    bool is_over_time; /* the keeper has ended it for that */
};

/* Takes over `sock`, connected to the process `keeper`, also on failure. */
int distant_open(int sock, pid_t keeper, struct distant **out, struct carrel_error *err);
void distant_free(struct distant *distant); /* NULL is fine */
DEFINE_AUTO(struct distant *, distant_free)

/* -ENOSPC: the disk limit is reached. `box` is one that distant_open() made. */
int distant_check_room(struct sandbox *box, struct carrel_error *err);

/*
 * A keeper may have long work to do, for us or for those before us; so it is given up only when
 * it is seen to do none: it was stopped, or, where `kind` and what it may wait for take seconds
 * at most, it sleeps on and on. Looked at each time that DISTANT_LOOK_MS went by without an
 * answer. -ETIMEDOUT: it is given up.
 */
#define DISTANT_LOOK_MS 10000
struct distant_look {
    uint64_t cpu_ms;   /* that it had used at the last look */
    unsigned n_asleep; /* looks in a row that found it asleep, without having done anything */
};
#define DISTANT_LOOK_INIT                                                                      \
    {                                                                                          \
        .cpu_ms = UINT64_MAX                                                                   \
    }
int distant_look(
        struct distant_look *look, pid_t pid, enum keeper_kind kind, struct carrel_error *err);

/* The rule itself: why it is given up, or NULL. */
const char *distant_judge(
        struct distant_look *look, const struct sandbox_process *keeper, enum keeper_kind kind);

/* Waits until there is something to receive, or the end, or the keeper is given up. */
int distant_await(struct distant *distant, enum keeper_kind kind, struct carrel_error *err);

/*
 * Asks, and waits for the answer. `fds` has KEEPER_MAX_FDS slots for what comes with it, or is
 * NULL where nothing is expected; the caller closes them. Returns how many came.
 */
int distant_ask(struct distant *distant, struct keeper_message *message, const int *given,
        size_t n_given, int *fds, struct carrel_error *err);
