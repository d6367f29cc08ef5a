/* cleanup.h - removes what crashes left, never finished work. */
#pragma once
#include "base/auto.h"
#include <carrel/error.h>
#include <stdbool.h>
#include <stddef.h>

struct cleanup_row {
    const char *runtime;
    unsigned sandboxes;        /* removed: their processes, groups, locks */
    struct carrel_error error; /* code 0: all went well */
};

/* A work tree in which an interrupted apply was repaired. */
struct cleanup_mended {
    char *top;
    bool is_folder; /* without git */
};

#define CLEANUP_MAX_ROWS 8
struct cleanup {
    struct cleanup_row rows[CLEANUP_MAX_ROWS]; /* runtimes that can leave something */
    size_t n_rows;
    unsigned sandboxes;  /* in all */
    unsigned entries;    /* of living sandboxes whose owner was killed, in the registry */
    unsigned workspaces; /* half-made or half-removed ones that were finished */
    unsigned checkouts;  /* half-made, and pristine trees that were not used for long */
    unsigned layers;     /* of images: without an owner, and half-made ones */
    unsigned caches;     /* of setup lines, shallow commits and folders, unused for long */
    struct cleanup_mended *mended;
    size_t n_mended;
};
void cleanup_finish(struct cleanup cleanup);
DEFINE_AUTO(struct cleanup, cleanup_finish)

/*
 * Sweeps the registry first, asks every runtime in turn, also when one of them fails, then
 * looks after workspaces. Returns 0, or the first failure; that of a runtime is in its row too.
 * A second call finds nothing.
 */
int cleanup_run(struct cleanup *cleanup, struct carrel_error *err);
