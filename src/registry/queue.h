/*
 * queue.h - the order in which waiting entries are admitted.
 *
 * A waiting entry is its own ticket: its number is its position, and the lock of its status
 * says that it still waits. An entry is admitted when the living and the waiting ones before it
 * are fewer than its limit. So entries with the same limit are admitted in order, and one with
 * a tighter limit does not delay later ones for which there is room.
 *
 * To be woken, the first of the queue watches all entries end; each other one only watches the
 * one before it. An end wakes one process and not the whole queue.
 */
#pragma once
#include "registry/registry.h"

/* What there is, apart from the entry `own`. */
struct queue_look {
    uint64_t n_living; /* admitted */
    uint64_t n_waiting;
    uint64_t n_ahead;                       /* waiting before `own` */
    uint64_t last_number;                   /* of the last one ahead */
    char last_ahead[REGISTRY_WORD_MAX + 1]; /* its id; "": none */
};

/*
 * Under the lock. `number` is that of the asking entry; UINT64_MAX: of a new one. Dead entries
 * are removed on the way.
 */
int queue_look(int top, const char *own, uint64_t number, struct queue_look *look,
        struct carrel_error *err);

/* Whether the asking entry may be admitted. */
bool queue_is_free(const struct queue_look *look, uint64_t max_living);

/* Waits until something about those ahead has changed, or the pause is over. */
struct queue_waiter {
    int inotify;                    /* -1: not available, only the pause wakes */
    int watch;                      /* -1: none */
    char on[REGISTRY_WORD_MAX + 1]; /* whose file is watched; "": all */
    bool is_set;
    uint64_t pause_ms; /* until the next look, if no event comes before */
    int requester; /* a socket: its other end closes when the requester gives up; -1: none */
};
void queue_waiter_init(struct queue_waiter *waiter, int requester);
void queue_waiter_finish(struct queue_waiter waiter);
DEFINE_AUTO(struct queue_waiter, queue_waiter_finish)

/*
 * 0: look again. The first call, and each one with another entry ahead, only sets up the watch
 * and returns at once, so that nothing between the look and the wait is missed. -ETIMEDOUT,
 * -EINTR, -ECANCELED: the requester has given up.
 */
int queue_waiter_wait(struct queue_waiter *waiter, int top, const struct queue_look *look,
        uint64_t deadline_ns);
