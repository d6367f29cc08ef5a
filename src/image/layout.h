/* layout.h - an OCI layout or an unpacked docker archive: a directory that a third party
 * filled. */
#pragma once
#include "image/manifest.h"

struct carrel_error;

enum layout_kind { LAYOUT_NONE, LAYOUT_OCI, LAYOUT_DOCKER };

/* What the directory is, by its files. */
enum layout_kind layout_kind(int dir);

struct layout {
    const char *digest; /* "sha256:..." of the manifest or the config */
    struct image_settings settings;
    const char *paths[MANIFEST_MAX_LAYERS];    /* of blobs, lowest first */
    const char *sha256[MANIFEST_MAX_LAYERS];   /* of the blobs, or "" */
    const char *diff_ids[MANIFEST_MAX_LAYERS]; /* of the tars in them */
    size_t n_layers;
};

/* Reads and verifies all but the layers. What it fills lives in `arena`. */
int layout_read(int dir, enum layout_kind kind, const char *tag, struct arena *arena,
        struct layout *out, struct carrel_error *err);

/* A file of the layout; `sha256` (hex, "" for none) is compared with all of it. At its start.
 */
int layout_open(int dir, const char *path, const char *sha256, struct carrel_error *err);
