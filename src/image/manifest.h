/*
 * manifest.h - what OCI layouts and docker archives say about an image. All of it is JSON that
 * a third party wrote. Nothing here opens a file.
 */
#pragma once
#include "base/arena.h"
#include "image/image.h"

struct carrel_error;

#define MANIFEST_MAX_BYTES (4U << 20)
#define MANIFEST_MAX_LAYERS 256 /* some may be the same */

/* "sha256:" and 64 hex digits: the digits. False for everything else. */
bool manifest_is_digest(const char *text);

/* Where something lies in a layout, and what it must hash to. */
struct manifest_blob {
    const char *path;   /* below the top of the layout, to be opened there and nowhere else */
    const char *sha256; /* hex; "": unknown */
};

enum manifest_kind { MANIFEST_IMAGE, MANIFEST_INDEX };

/* The one entry of an index that is meant. */
struct manifest_choice {
    struct manifest_blob blob;
    enum manifest_kind kind;
};

/*
 * Chooses from an index: `tag` as its annotations have it (NULL: any), then this machine's
 * platform if that leaves several. -EINVAL with what there is, when none or more are left.
 */
int manifest_choose(struct arena *arena, const char *text, size_t len, const char *tag,
        struct manifest_choice *out, struct carrel_error *err);

struct manifest {
    struct manifest_blob config;
    struct manifest_blob layers[MANIFEST_MAX_LAYERS]; /* lowest first */
    size_t n_layers;
};

/* An OCI or docker v2 manifest. */
int manifest_read(struct arena *arena, const char *text, size_t len, struct manifest *out,
        struct carrel_error *err);

/* manifest.json of `docker save`, which lists images; `tag` as above. */
int manifest_read_docker(struct arena *arena, const char *text, size_t len, const char *tag,
        struct manifest *out, struct carrel_error *err);

/* Whether a file looks like that manifest.json at all. */
bool manifest_is_docker(const char *text, size_t len);

/* The image's config: settings, and the hex digests of its `n_layers` tars, lowest first. */
int manifest_read_config(struct arena *arena, const char *text, size_t len, size_t n_layers,
        struct image_settings *settings, const char **diff_ids, struct carrel_error *err);
