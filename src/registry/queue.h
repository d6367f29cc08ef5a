/*
 * queue.h - who may go next.
 *
 * An entry that waits is its own ticket: its number says when it came, the lock of its status
 * that it still waits. One may go when fewer than its limit live or are before it in the queue.
 * So those with the same limit go in the order in which they came, and one with a tighter limit
 * holds nobody up who comes while there is room for more.
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
    uint64_t n_ahead;                       /* of those who wait: before `own` */
    uint64_t last_number;                   /* of the last one ahead */
    char last_ahead[REGISTRY_WORD_MAX + 1]; /* its id; "": none */
};

/*
 * Under the lock. `number` is that of the one who asks; UINT64_MAX: who would come now. The
 * dead are taken away on the way: they would be looked at again and again.
 */
int queue_look(int top, const char *own, uint64_t number, struct queue_look *look,
        struct carrel_error *err);

/* Whether the one who asked may go. */
bool queue_is_free(const struct queue_look *look, uint64_t max_living);

/* Waits until something about those ahead has changed, or it is time to look again. */
struct queue_bell {
    int inotify;                    /* -1: there is none to be had, then time alone wakes */
    int watch;                      /* -1: none */
    char on[REGISTRY_WORD_MAX + 1]; /* whose file is watched; "": all */
    bool is_set;
    uint64_t pause_ms; /* until the next look, if it does not ring before */
    int asker;         /* a socket: nobody waits any more when its other end goes; -1: none */
};
void queue_bell_init(struct queue_bell *bell, int asker);
void queue_bell_finish(struct queue_bell bell);
DEFINE_AUTO(struct queue_bell, queue_bell_finish)

/*
 * 0: look again. The first call, and each after another one is ahead, only sets the bell up and
 * returns at once, so that nothing between the look and the wait is missed. -ETIMEDOUT, -EINTR,
 * -ECANCELED: the asker is gone.
 */
int queue_bell_wait(
        struct queue_bell *bell, int top, const struct queue_look *look, uint64_t deadline_ns);
