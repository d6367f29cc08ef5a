/*
 * pump.h - bytes between a program and its caller.
 *
 * One buffer a stream. A stream is read only when its buffer is empty, so a caller that does
 * not read slows the program down and costs no memory. No write blocks: a deadline is never
 * missed for a reader that stopped reading.
 */
#pragma once
#include "core/result/capture.h"
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>

struct pump {
    int from;                /* -1: ended */
    int to;                  /* -1: only captured */
    struct capture *capture; /* NULL: only passed on */
    size_t begin, end;       /* what of `bytes` waits to be written */
    /* Why `to` is -1, a negative errno; 0: the reader has closed it, or all is well. */
    int error;
    bool never_blocks; /* `to` takes what it can, however much is written */
    char bytes[64U << 10];
};

/*
 * A way to write to a descriptor of the caller without ever blocking. Its flags may be shared
 * with other processes, so they are not changed; and another writer to the same pipe may take
 * the room that poll() reported. So it is opened again, if the kernel allows that. Returns a
 * descriptor to close, or -1: use the caller's.
 */
int pump_open_sink(int fd);

void pump_init(struct pump *pump, int from, int to, struct capture *capture);

/* Adds a few bytes of carrel behind all that was read; nothing waits to be written. */
void pump_put(struct pump *pump, const char *bytes, size_t len);

/* The source has ended, and nothing waits to be written. */
bool pump_is_done(const struct pump *pump);

/* Nothing that was read waits to be written. */
bool pump_is_empty(const struct pump *pump);

/* Fills in one pollfd: what this pump waits for now. */
void pump_watch(const struct pump *pump, struct pollfd *watch);

enum pump_state { PUMP_GOES_ON, PUMP_SOURCE_ENDED, PUMP_SINK_CLOSED };

/*
 * Moves what can be moved after poll(). The pump never closes a descriptor; when it answers
 * SOURCE_ENDED or SINK_CLOSED that side is out of use and the owner may close it.
 */
enum pump_state pump_move(struct pump *pump, short revents);
