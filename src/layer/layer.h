/*
 * layer.h - writable directories on disk that become layers under others.
 *
 *   <state>/layers/L-<16>/     an entry of a store, see base/store.h
 *       upper/ work/   what one sandbox at a time writes to (struct sandbox_overlay)
 *       sealed         exists: upper/ never changes again and may lie below others
 *
 * A layer begins writable, is sealed once, and is removed when no process holds it and nothing
 * names it. A struct layer holds its lock. A layer that is to outlive its holders must be
 * named, by a snapshot (snapshot.h) or by the namer of layer_sweep().
 *
 * Directories belong to the caller, and so does all that a sandbox writes there: id-mapped
 * mounts show it as the program's.
 *
 * Only the seal is synced: what was written in the moments before a machine stops may be lost,
 * as with any file that was not synced.
 */
#pragma once
#include "base/auto.h"
#include "base/id.h"
#include "base/store.h"
#include <stdbool.h>
#include <stddef.h>

struct carrel_error;

#define LAYER_ID_SIZE ID_SIZE
#define LAYER_MAX_CHAIN 40 /* layers in a stack; more are merged, see layer_shorten() */

struct layer {
    char id[LAYER_ID_SIZE];
    char *path;  /* of its directory: the `space` of a struct sandbox_overlay */
    char *upper; /* <path>/upper: a `lower` of others */
    char *git;   /* <path>/gitupper: the same for a git dir, in a layer of a workspace */
    int dir;     /* holds the lock */
    bool is_sealed;
};
#define LAYER_INIT ((struct layer){ .dir = -1 })
void layer_close(struct layer layer); /* gives up the lock; LAYER_INIT is fine */
DEFINE_AUTO(struct layer, layer_close)

bool layer_is_id(const char *text);

/* Layers by id, topmost first. */
struct layer_list {
    char ids[LAYER_MAX_CHAIN][LAYER_ID_SIZE];
    size_t n;
};

/* The text has a space between two ids; NULL is an empty list. -EBADMSG: it is damaged. */
#define LAYER_LIST_SIZE ((size_t)LAYER_MAX_CHAIN * LAYER_ID_SIZE)
int layer_list_parse(const char *text, struct layer_list *out);
void layer_list_write(const struct layer_list *list, char text[static LAYER_LIST_SIZE]);

/* A new one, empty and writable, held. `state` is the state directory, and exists. */
int layer_new(const char *state, struct layer *out, struct carrel_error *err);

/* Holds one that is there. -ENOENT: it is not. */
int layer_open(const char *state, const char *id, struct layer *out, struct carrel_error *err);

/*
 * Makes a writable one ready for the next sandbox, with a new work/. The caller knows that no
 * sandbox uses it any more. -EROFS: it is sealed.
 */
int layer_renew(struct layer *layer, struct carrel_error *err);

/* Its upper never changes again. The caller knows that no sandbox writes to it. Idempotent. */
int layer_seal(struct layer *layer, struct carrel_error *err);

/*
 * A sealed copy of a layer whose sandbox is paused: everything that an overlay reads
 * (whiteouts, opaque directories, modes, times, attributes, hard links, holes). Data is shared
 * where the file system can (FICLONE), else copied. The copy is held.
 */
int layer_copy(const char *state, const struct layer *from, struct layer *out,
        struct carrel_error *err);

/*
 * The same into the directory `to`, which has no part yet or empty ones; both may be of any
 * file system, and are layers or workspaces. The caller knows that nothing writes to `from`.
 */
int layer_copy_parts(int from, int to, struct carrel_error *err);

/* Removes the parts of `dir`. */
int layer_remove_parts(int dir, struct carrel_error *err);

/*
 * One sealed layer that shows what `n` sealed ones, topmost first, show together: a tree of
 * directories, and hard links to the files of the others, so no data is copied. `below` are the
 * directories on which it is going to lie, topmost first, NULL-terminated (NULL: none): a
 * removal is recorded only where they have the name, since an overlay shows a whiteout that has
 * nothing below it. Layers of workspaces have a second tree gitupper/, over `git_below`.
 */
int layer_merge(const char *state, const struct layer *layers, size_t n,
        const char *const *below, const char *const *git_below, struct layer *out,
        struct carrel_error *err);

/*
 * Makes the directory `name` in `dir`, with what `n` trees (paths, topmost first) show together
 * above `below`, to be looked at and removed: hard links, on the same file system. No process
 * may write to the trees meanwhile. A directory that we may not read is there, and empty.
 */
int layer_flatten(const char *const *trees, size_t n, const char *const *below, int dir,
        const char *name, struct carrel_error *err);

/*
 * Merges a stack of sealed layers into one by layer_merge() if it has LAYER_MAX_CHAIN - 1 of
 * them, so that one more fits on top; a smaller one is not changed. The caller holds layers[0]
 * to layers[*n - 1], and afterwards those that replace them.
 */
int layer_shorten(const char *state, struct layer *layers, size_t *n, const char *const *below,
        const char *const *git_below, struct carrel_error *err);

/* Opens <state>/layers, and makes it if need be. */
int layer_store(const char *state, struct store *out, struct carrel_error *err);

/* Closes and removes it, unless another process holds it (-EBUSY). It must have no name. */
int layer_remove(struct layer *layer, struct carrel_error *err);

/*
 * Removes the layers that no process holds and that neither a snapshot nor `namer` (may be
 * NULL) names, and what crashes left. When `namer` fails, or a snapshot cannot be read, no
 * layer is removed. Returns how many.
 */
int layer_sweep(const char *state, store_namer *namer, void *context, struct carrel_error *err);

/* Adds the ids of the list. -ENOMEM. */
int layer_names_add(struct store_names *names, const struct layer_list *list);
