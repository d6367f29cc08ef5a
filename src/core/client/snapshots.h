/* snapshots.h - the snapshots there are. */
#pragma once
#include <stddef.h>
#include <stdint.h>

struct carrel_error;

struct snapshot_view {
    const char *name;
    const char *created; /* "2026-01-31T23:59:59.000000Z" */
    const char *from;    /* NULL: unknown */
    const char *image;   /* NULL: the host's root */
    size_t n_layers;
    uint64_t bytes; /* of its topmost layer */
};

/* Shows each to `visit`, sorted by name; a negative answer ends the walk. */
int snapshots_each(int (*visit)(const struct snapshot_view *view, void *context), void *context,
        struct carrel_error *err);

/* Removes one, and the layers that nothing else uses. -ENOENT. */
int snapshots_remove(const char *name, struct carrel_error *err);
