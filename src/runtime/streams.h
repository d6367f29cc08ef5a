/*
 * streams.h - what adapters that start processes on this machine share: the two ends of a
 * process's streams, and which process has which id.
 */
#pragma once
#include "runtime/runtime.h"

struct carrel_error;

struct streams {
    int theirs[3];
    struct process ours;
};
#define STREAMS_INIT                                                                           \
    (struct streams)                                                                           \
    {                                                                                          \
        .theirs = { -1, -1, -1 }, .ours = PROCESS_INIT                                         \
    }

void streams_close(struct streams streams);
DEFINE_AUTO(struct streams, streams_close)

/* Three pipes; /dev/null instead of the first where there is no input. */
int streams_open_pipes(
        struct streams *streams, const struct process_spec *spec, struct carrel_error *err);

/* Hands our ends over, as the process `id`. */
struct process streams_steal(struct streams *streams, uint32_t id);
