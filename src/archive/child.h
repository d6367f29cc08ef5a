/* child.h - a part of the work in a process of its own, with one stream of bytes to it. */
#pragma once
#include "base/auto.h"
#include <sys/types.h>

struct carrel_error;
struct unpacked;

struct child {
    pid_t pid; /* 0: none */
    int verdict;
    int stream; /* our end of the bytes it makes or takes */
};
#define CHILD_INIT                                                                             \
    {                                                                                          \
        .verdict = -1, .stream = -1                                                            \
    }

/*
 * Starts a process that calls `work` with its end of the stream and ends with us. `answer` is
 * the descriptor that it must keep to be heard.
 */
int child_start(int (*work)(int stream, int answer, const void *arg, struct unpacked *out,
                        struct carrel_error *err),
        const void *arg, struct child *out, struct carrel_error *err);

/* Closes the stream and waits for the end. What `work` returned and filled is returned here; a
 * child that was ended has failed. `out` may be NULL. */
int child_ask(struct child *child, struct unpacked *out, struct carrel_error *err);

void child_finish(struct child child); /* one that was not asked is ended */
DEFINE_AUTO(struct child, child_finish)
