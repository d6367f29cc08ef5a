/*
 * snapshot.h - names for stacks of sealed layers.
 *
 *   <state>/snapshots/<name>.json
 *
 * A snapshot is a file that names layers; the layers stay as long as it does. It is written to
 * a draft of the layers' store, while its layers are held, and then linked to its name.
 */
#pragma once
#include "base/auto.h"
#include "layer/layer.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct carrel_error;

#define SNAPSHOT_NAME_MAX                                                                      \
    64 /* letters, digits, '.', '_', '-'; the first is a letter or digit */

struct snapshot {
    char name[SNAPSHOT_NAME_MAX + 1];
    struct layer_list layers;
    char *image;     /* name of the image below them; NULL: the host's root */
    char *workspace; /* "T/R": the workspace that the sandbox had; NULL: none */
    struct layer_list workspace_layers; /* that the workspace was on */
    char *from;                         /* the sandbox it was made of; NULL: unknown */
    int64_t created_s;                  /* 0: snapshot_write() fills it in */
};
void snapshot_finish(struct snapshot snapshot);
DEFINE_AUTO(struct snapshot, snapshot_finish)

bool snapshot_is_name(const char *text);

/*
 * Writes it. The caller holds every one of its layers, and all are sealed. -EEXIST: the name is
 * taken; -E2BIG: too many layers.
 */
int snapshot_write(
        const char *state, const struct snapshot *snapshot, struct carrel_error *err);

/* -ENOENT with the names there are. The strings in *out are the caller's (snapshot_finish). */
int snapshot_read(
        const char *state, const char *name, struct snapshot *out, struct carrel_error *err);

/* Calls `each` for every snapshot, sorted by name; a negative answer ends the walk. */
int snapshot_each(const char *state,
        int (*each)(const struct snapshot *snapshot, void *context), void *context,
        struct carrel_error *err);

/* Removes the name. The next sweep removes layers that nothing else names. -ENOENT. */
int snapshot_remove(const char *state, const char *name, struct carrel_error *err);
