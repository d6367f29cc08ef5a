/*
 * launch.h - starts a keeper: carrel executed afresh, with a request.
 *
 * The process that asks may have threads, memory and descriptors of its own; a keeper has none
 * of them. It gets the request in a file in memory, a socket for its report, and the locks of
 * the layers that it begins with.
 */
#pragma once
#include "executable/executable.h"
#include <stddef.h>

struct buf;
struct carrel_error;

/* The descriptors that `carrel keeper` begins with, besides the three streams. */
enum { KEEPER_REQUEST_FD = EXECUTABLE_FIRST_FD, KEEPER_REPORT_FD, KEEPER_FIRST_LOCK };

struct keeper_launch {
    const char *cwd;           /* where to run it; NULL: where the caller is */
    const struct buf *request; /* see request.h */
    int report;                /* gets struct keeper_ready */
    const int *locks;          /* KEEPER_FIRST_LOCK and so on; -1 is left out */
    size_t n_locks;
};

/* -ENOENT: the program of a library was not found; the message says where it was looked for. */
int keeper_launch(const struct keeper_launch *launch, struct carrel_error *err);
