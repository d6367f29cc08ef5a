/*
 * image.h - root filesystems that sandboxes are made from. In <state>/images:
 *
 *   <name>.json         an image: its layers and its settings
 *   base                below all layers: places that every sandbox needs
 *   layers/<id>/tree    a layer, unpacked once and never changed; <id>: SHA-256 of its tar
 *   layers/.tmp         imports in progress, see base/store.h
 *
 * A layer gets its name when it is complete, and an image when all its layers have theirs.
 */
#pragma once
#include "archive/unpack.h"
#include "base/auto.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct carrel_error;

#define IMAGE_NAME_MAX 128
#define IMAGE_MAX_LAYERS 64 /* an overlay takes more, but a sandbox may add its own */

/*
 * Letters, digits and . _ - : / @ after a letter or digit: "debian", "docker.io/library/x:1".
 * Never "none", which stands for no image.
 */
bool image_is_name(const char *text);

/* What an image says about programs that run in it. Lists end with NULL and are never NULL. */
struct image_settings {
    const char *const *env; /* "K=V" */
    const char *const *entrypoint;
    const char *const *cmd;
    const char *workdir; /* absolute; "" when there is none */
    const char *user;    /* "name", "name:group", "1000:1000"; "" when there is none */
};

/* A name and which image it was: "debian@0123456789abcdef". */
#define IMAGE_PIN_MAX (IMAGE_NAME_MAX + 18)

struct image {
    const char *name;
    const char *source;        /* what it was imported from, as it was named then */
    const char *kind;          /* "directory", "tar", "oci" or "docker" */
    const char *digest;        /* of the manifest or config: "sha256:..."; "" of a plain tree */
    uint64_t created;          /* seconds since 1970: when it was imported */
    uint64_t bytes;            /* of the files in its layers */
    const char *const *layers; /* ids, topmost first; NULL-terminated */
    size_t n_layers;
    struct image_settings settings;
    char pin[IMAGE_PIN_MAX]; /* changes when the layers do; "" before it is read */

    /* Filled by image_open() alone: */
    /* Absolute paths of the layers, topmost first, and of what lies below them all (base.h);
     * NULL-terminated. */
    const char *const *trees;
    int *locks; /* n_layers descriptors: the layers stay as long as one is open */
};
void image_free(struct image *image); /* NULL is fine; releases the locks */
DEFINE_AUTO(struct image *, image_free)

/*
 * Its record; its layers are not held. `name` may be a pin. -ENOENT with a message; -ESTALE:
 * the name belongs to another image by now.
 */
int image_read(
        const char *state, const char *asked, struct image **out, struct carrel_error *err);

/* The same, with trees and locks: its layers stay until image_free(), also after
 * image_remove(). */
int image_open(
        const char *state, const char *asked, struct image **out, struct carrel_error *err);

/* Whether the pin is one of an image of that name. */
bool image_pin_is_of(const char *pin, const char *name);

struct json;

/* All that is known of an image but `trees` and `locks`. */
void image_write_json(const struct image *image, struct json *json, const char *key);

/* Calls `each` for every image in the order of names; stops at the first that is not 0. */
int image_list(const char *state, int (*each)(const struct image *image, void *arg), void *arg,
        struct carrel_error *err);

/* Also removes the layers that no other image names and no sandbox uses; a sweep removes the
 * others later. */
int image_remove(const char *state, const char *name, struct carrel_error *err);

/* Removes what killed imports left, and layers that no image names and no process holds.
 * Returns how many. */
int image_sweep(const char *state, struct carrel_error *err);

/* A temporary directory in the store for an import, removed with its content. */
struct image_room;
int image_room_make(const char *state, struct image_room **out, struct carrel_error *err);
const char *image_room_path(const struct image_room *room);
void image_room_free(struct image_room *room); /* NULL is fine */
DEFINE_AUTO(struct image_room *, image_room_free)

struct image_import {
    const char *source; /* directory, tar, OCI layout or docker archive */
    bool has_fd;        /* it is open already, as `fd`, and `source` is what it is called */
    int fd;
    const char *name; /* the new image; one of that name is replaced */
    const char *tag; /* which of several in the source; NULL: the only one, or this machine's */
    const char *called;       /* what `source` is called in the record; NULL: by its own name */
    struct tar_limits limits; /* zeroes: TAR_LIMITS; for all layers together */
};

struct image_imported {
    struct unpacked total; /* of the layers that were unpacked now */
    size_t n_layers;
    size_t n_shared; /* of them: existed already */
    bool is_replaced;
};

/*
 * All or nothing: on success the image is complete and its digests are verified, else nothing
 * has changed. The program carrel parses: see executable/executable.h.
 */
int image_import(const char *state, const struct image_import *what, struct image_imported *out,
        struct carrel_error *err);
