/* image.h - root filesystems that sandboxes are made from. */
#pragma once
#include <carrel/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * What is known of an image. Lists end with NULL and are never NULL; a text that there is none
 * of is "".
 */
struct carrel_image_info {
    size_t size;
    const char *name;
    const char *source;        /* what it was imported from, as it was named then */
    const char *kind;          /* "directory" "tar" "oci" "docker" */
    const char *digest;        /* of the manifest or config: "sha256:..." */
    uint64_t created;          /* seconds since 1970: when it was imported */
    uint64_t bytes;            /* of the files in its layers */
    const char *const *layers; /* ids, topmost first */
    size_t n_layers;
    const char *const *env; /* "K=V" */
    const char *const *entrypoint;
    const char *const *cmd;
    const char *workdir;
    const char *user; /* "name", "name:group", "1000:1000" */
};

/* Visits every image in the order of names; a non-zero answer ends the walk and is returned. */
CARREL_PUBLIC int carrel_image_each(
        int (*visit)(const struct carrel_image_info *info, void *context), void *context,
        struct carrel_error *err);

/* All of it as one JSON object. */
CARREL_PUBLIC int carrel_image_json(
        const struct carrel_image_info *info, char **out, struct carrel_error *err);

struct carrel_image; /* opaque: what was known of an image when it was opened */

/* -ENOENT: there is no image of that name. */
CARREL_PUBLIC int carrel_image_open(
        const char *name, struct carrel_image **out, struct carrel_error *err);

CARREL_PUBLIC void carrel_image_free(struct carrel_image *image); /* NULL is fine */

/* It belongs to the handle. */
CARREL_PUBLIC const struct carrel_image_info *carrel_image_info(
        const struct carrel_image *image);

/* What an import did. */
struct carrel_image_imported {
    size_t size;
    bool is_replaced;  /* there was an image of that name */
    uint64_t n_shared; /* layers that existed already */
    uint64_t entries;  /* that were unpacked */
    uint64_t bytes;
    uint64_t left_out; /* devices, FIFOs and sockets */
};

/* Of the call that gave this handle; NULL: it was carrel_image_open(). */
CARREL_PUBLIC const struct carrel_image_imported *carrel_image_imported(
        const struct carrel_image *image);

/* What to import. Start from CARREL_IMAGE_IMPORT_OPTIONS_INIT; set a source and the name. */
struct carrel_image_import_options {
    size_t size; /* of this struct, filled in by the INIT macro */
    /*
     * A directory with a root filesystem; a tar archive of one, plain or compressed with gzip,
     * zstd or xz; an OCI layout, as a directory or an archive; or what `docker save` wrote.
     */
    const char *source;
    int source_fd;    /* read this instead, `source` is what it is called; -1: none */
    const char *name; /* of the new image; one of that name is replaced */
    const char *tag; /* which of several in the source; NULL: the only one, or this machine's */
};

#define CARREL_IMAGE_IMPORT_OPTIONS_INIT                                                       \
    {                                                                                          \
        .size = sizeof(struct carrel_image_import_options), .source_fd = -1                    \
    }

/*
 * All or nothing: on success the image is complete and its digests are verified, else nothing
 * has changed. The program carrel, executed afresh and confined, parses what is imported.
 */
CARREL_PUBLIC int carrel_image_import(const struct carrel_image_import_options *options,
        struct carrel_image **out, struct carrel_error *err);

/* What to pull. Start from CARREL_IMAGE_PULL_OPTIONS_INIT and set the reference. */
struct carrel_image_pull_options {
    size_t size;           /* of this struct, filled in by the INIT macro */
    const char *reference; /* "registry/repository:tag", also after "docker://" */
    const char *name;      /* of the new image; NULL: as the reference */
    bool is_insecure;      /* without TLS, or with an unknown certificate */
};

#define CARREL_IMAGE_PULL_OPTIONS_INIT                                                         \
    {                                                                                          \
        .size = sizeof(struct carrel_image_pull_options)                                       \
    }

/* The same from a registry, through skopeo(1). -ENOENT: there is no skopeo in PATH. */
CARREL_PUBLIC int carrel_image_pull(const struct carrel_image_pull_options *options,
        struct carrel_image **out, struct carrel_error *err);

/*
 * Also removes the layers that no other image has and no sandbox uses; the others are removed
 * later, by carrel_host_cleanup() at the latest.
 */
CARREL_PUBLIC int carrel_image_remove(const char *name, struct carrel_error *err);

#ifdef __cplusplus
}
#endif
