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

struct remote {
    struct sandbox base;
    int sock;      /* requests and answers; base.event_fd has the reports */
    pid_t opener;  /* the process that opened it */
    pid_t keeper;  /* as the registry had it; 0: not known */
    bool is_stuck; /* no answer came in time: a late one would be taken for the next */
    struct keeper_facts facts;
    bool is_detaching;   /* of the next start */
    bool is_alone;       /* of the next start: the keeper ends it in time */
    uint64_t timeout_ms; /* of the next start; 0: the keeper's. Then: what it got */
    uint64_t oom_kills;  /* of the process whose end was reported last */
    uint64_t pids_refused;
    bool is_over_disk;
    bool is_over_time; /* the keeper has ended it for that */
};

/* Takes over `sock`, connected to the process `keeper`, also on failure. */
int remote_open(int sock, pid_t keeper, struct remote **out, struct carrel_error *err);
void remote_free(struct remote *remote); /* NULL is fine */
DEFINE_AUTO(struct remote *, remote_free)

/* Waits until there is something to receive, or the end, or the keeper is given up. */
int remote_await(struct remote *remote, enum keeper_kind kind, struct carrel_error *err);

/*
 * Asks, and waits for the answer. `fds` has KEEPER_MAX_FDS slots for what comes with it, or is
 * NULL where nothing is expected; the caller closes them. Returns how many came.
 */
int remote_ask(struct remote *remote, struct keeper_message *message, const int *given,
        size_t n_given, int *fds, struct carrel_error *err);
