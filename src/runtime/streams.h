/*
 * streams.h - what adapters that start processes on this machine share: the two ends of a
 * process's streams, and which process has which id.
 */
#pragma once
#include "base/auto.h"
#include "runtime/runtime.h"
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct carrel_error;

#define STREAMS_MOST (3 + PROCESS_EXTRA)

struct streams {
    int theirs[STREAMS_MOST]; /* by the number that they get in the process */
    struct process ours;
};
#define STREAMS_INIT                                                                           \
    (struct streams)                                                                           \
    {                                                                                          \
        .theirs = { -1, -1, -1, -1, -1 }, .ours = PROCESS_INIT                                 \
    }

void streams_close(struct streams streams);
DEFINE_AUTO(struct streams, streams_close)

/*
 * Three pipes, with /dev/null instead of the first where there is no input; none of them with a
 * terminal. Then those that are asked for beside them.
 */
int streams_open(
        struct streams *streams, const struct process_spec *spec, struct carrel_error *err);

/* Puts all of `theirs` that are open behind the `n` descriptors in `fds`. Returns how many. */
size_t streams_add_theirs(const struct streams *streams, int *fds, size_t n);

/* Hands our ends over, as the process `id`. */
struct process streams_steal(struct streams *streams, uint32_t id);

/*
 * Which process has which id. A process that has exited stays in the table until its exit was
 * collected. Another process may have its pid by then, so started_find() is only right for a
 * process that is known to be a child of the adapter.
 */
struct started {
    struct started_one {
        uint32_t id;
        pid_t pid;
    } * all;
    size_t n;
    size_t size;
};

/* Makes room for one more, so that started_add() cannot fail. */
int started_reserve(struct started *started, struct carrel_error *err);
void started_add(struct started *started, uint32_t id, pid_t pid);
void started_remove(struct started *started, uint32_t id);
uint32_t started_find(const struct started *started, pid_t pid); /* 0: none */
void started_finish(struct started *started);
