/*
 * registry.h - the living sandboxes of this user, and the requests that wait for a slot.
 *
 * There is no daemon. One directory of the user, <rundir>/sandboxes, is all that is shared:
 *
 *     lock          held for the moment of a change; has the number of the latest entry, and
 *                   whether an owner died since the last registry_take_deaths()
 *     status/ID     one small file for each entry, locked by its owner from the start
 *     names/NAME    a link to the id
 *     ID/sock       where the owner listens
 *     ID/record.json  what is known of the sandbox and does not change
 *
 * An entry is alive while its status file is locked. The kernel releases the lock with the last
 * copy of the owner's descriptor, so a crash needs no handler. An entry whose lock is free is
 * dead, and the next process may remove it.
 *
 * Changes are made under `lock`, one after the other. Reading takes no lock.
 */
#pragma once
#include "base/auto.h"
#include "base/fd.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct carrel_error;

#define REGISTRY_WORD_MAX 64 /* bytes of an id, of a name */
#define REGISTRY_RECORD_MAX (256U << 10)

struct registry {
    int dir; /* <rundir>/sandboxes */
};

/* Opens it and makes it if need be. Refused when it is not a directory of ours alone. */
int registry_open(struct registry *reg, struct carrel_error *err);

/* The same below another directory than the user's, which this checks as little as openat(). */
int registry_open_at(struct registry *reg, int rundir, struct carrel_error *err);

void registry_close(struct registry reg);
DEFINE_AUTO(struct registry, registry_close)
#define REGISTRY_NONE                                                                          \
    (struct registry)                                                                          \
    {                                                                                          \
        .dir = -1                                                                              \
    }

enum registry_state {
    REGISTRY_WAITING, /* in the queue: there is no sandbox yet */
    REGISTRY_CREATED, /* admitted; its owner makes it */
    REGISTRY_RUNNING,
    REGISTRY_PAUSED,
    REGISTRY_ENDING,
};
const char *registry_state_name(enum registry_state state); /* "running" */

/* What changes while it lives. Times are of CLOCK_BOOTTIME. */
struct registry_status {
    enum registry_state state;
    pid_t pid;              /* of its owner; for printing */
    uint64_t lease_end_ns;  /* 0: no lease */
    uint64_t idle_ms;       /* 0: may be idle for ever */
    uint64_t idle_since_ns; /* 0: not idle */
    uint32_t n_processes;   /* that clients started and that run */
    uint32_t n_clients;     /* connected */
};

struct registry_entry {
    char id[REGISTRY_WORD_MAX + 1];
    char name[REGISTRY_WORD_MAX + 1]; /* "": none */
    uint64_t number;                  /* in the order in which entries are made */
    uint64_t began_ns;                /* when it was made: CLOCK_BOOTTIME */
    int top;                          /* the registry's directory */
    int dir;                          /* ID/ */
    int status_fd; /* of an owner: keeps the entry alive; of a client: to read */
    int listen_fd; /* of an owner: non-blocking, SOCK_SEQPACKET; of a client: -1 */
    bool is_owner;
};

/* Closes its descriptors and removes nothing; NULL is fine. See registry_remove(). */
void registry_entry_free(struct registry_entry *entry);
DEFINE_AUTO(struct registry_entry *, registry_entry_free)

/* --- owners --- */

struct registry_request {
    const char *id;       /* unguessable and never used again: "S-..." */
    const char *name;     /* the user's, checked by the caller; NULL: none. Never "S-..." */
    uint64_t max_living;  /* at most so many at once; 0: no limit */
    uint64_t max_queued;  /* at most so many that wait; 0: no queue */
    uint64_t queue_ms;    /* how long; 0: not at all */
    const int *requester; /* its other end closes: given up; NULL: none */
};

/*
 * Makes an entry, and waits while `max_living` are alive: first come, first served. The owner
 * holds it from the start; a forked process inherits it with its descriptors, and the parent
 * then calls registry_entry_free().
 *
 * -EEXIST: a living sandbox has this name; -EAGAIN: no room, and the queue is full; -ETIMEDOUT:
 * no room in time; -EINTR: a signal's handler ran while it waited; -ECANCELED: the other end of
 * `requester` was closed while it waited.
 */
int registry_claim(const struct registry *reg, const struct registry_request *request,
        struct registry_entry **out, struct carrel_error *err);

/* Publishes the facts that never change: one JSON object. Readers see all of it or nothing. */
int registry_publish(
        struct registry_entry *entry, const char *json, size_t len, struct carrel_error *err);

/* One write. A reader sees the old or the new one whole. */
int registry_set_status(const struct registry_entry *entry,
        const struct registry_status *status, struct carrel_error *err);

/*
 * The end, by the owner: name, directory and status are removed, and the queue is woken.
 * Descriptors stay open until registry_entry_free().
 */
int registry_remove(struct registry_entry *entry, struct carrel_error *err);

/* --- clients --- */

/*
 * The living entry with this id, this name, or the only one whose id begins so ("S-" and four
 * more at least). A later sandbox of the same name is another one. -ENOENT: none; -ENOTUNIQ:
 * several.
 */
int registry_find(const struct registry *reg, const char *word, struct registry_entry **out,
        struct carrel_error *err);

/*
 * A socket connected to the owner. -ESRCH: the owner has ended; -EAGAIN: the entry waits in the
 * queue; -ETIMEDOUT: the queue of the owner's socket stayed full.
 */
int registry_connect(
        const struct registry_entry *entry, unsigned max_ms, struct carrel_error *err);

bool registry_is_alive(const struct registry_entry *entry);
int registry_get_status(const struct registry_entry *entry, struct registry_status *status,
        struct carrel_error *err);

/* Adds the record to `text`; nothing while the sandbox is being created. */
struct buf;
int registry_get_record(
        const struct registry_entry *entry, struct buf *text, struct carrel_error *err);

/* --- all of them --- */

struct registry_view {
    const char *id;
    const char *name;   /* "": none */
    const char *record; /* NUL-terminated; "": it is being created, or waits */
    size_t record_len;
    uint64_t number;
    uint64_t began_ns;
    struct registry_status status;
    bool is_alive;
};

/*
 * Shows every entry to `visit`, in the order of their numbers, also dead ones that are not
 * removed yet and waiting ones (REGISTRY_WAITING). A view is valid only during `visit`, which
 * stops the walk by returning other than 0; that is returned.
 */
int registry_each(const struct registry *reg,
        int (*visit)(void *context, const struct registry_view *view), void *context,
        struct carrel_error *err);

/* Removes dead and half-made entries. Returns how many. */
int registry_sweep(const struct registry *reg, struct carrel_error *err);

/*
 * Whether an owner died since this was last asked, or nothing is known of that: the directory
 * is new, and owners may have ended with the machine. The caller then removes what they
 * kept elsewhere. 1 or 0; negative errno.
 */
int registry_take_deaths(const struct registry *reg, struct carrel_error *err);
