/* child.h - runs part of the work in a child process, connected by one stream. */
#pragma once
#include "base/auto.h"
#include <sys/types.h>

struct carrel_error;
struct unpacked;

struct child {
    pid_t pid; /* 0: none */
    int verdict;
    int stream; /* our end of the bytes that the child writes or reads */
};
#define CHILD_INIT                                                                             \
    {                                                                                          \
        .verdict = -1, .stream = -1                                                            \
    }

/*
 * Starts a process that calls `work` with its end of the stream and is killed when we exit.
 * `answer` is the descriptor for its result, which `work` must not close.
 */
int child_start(int (*work)(int stream, int answer, const void *arg, struct unpacked *out,
                        struct carrel_error *err),
        const void *arg, struct child *out, struct carrel_error *err);

/*
 * Closes the stream and waits for the child. Returns what `work` returned and filled; a child
 * that was killed has failed. `out` may be NULL.
 */
int child_ask(struct child *child, struct unpacked *out, struct carrel_error *err);

void child_finish(struct child child); /* kills the child if it was not asked */
DEFINE_AUTO(struct child, child_finish)
