/* child.h - runs part of the work in a process of its own, connected by one stream. */
#pragma once
#include "archive/job.h"
#include "base/auto.h"

struct carrel_error;

struct child {
    int process; /* a pidfd; -1: none */
    int verdict;
    int stream; /* our end of the bytes that the child writes or reads */
};
#define CHILD_INIT                                                                             \
    {                                                                                          \
        .process = -1, .verdict = -1, .stream = -1                                             \
    }

/*
 * Starts a process that does this work on `source` and is killed when this thread ends.
 * `limits` NULL: TAR_LIMITS.
 */
int child_start(enum job_kind kind, int source, const struct tar_limits *limits,
        struct child *out, struct carrel_error *err);

/*
 * Closes the stream and waits for the child. Returns its result and fills `out` (may be NULL);
 * a child that was killed has failed.
 */
int child_ask(struct child *child, struct unpacked *out, struct carrel_error *err);

void child_finish(struct child child); /* kills the child if it was not asked */
DEFINE_AUTO(struct child, child_finish)
