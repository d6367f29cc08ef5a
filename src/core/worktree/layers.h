/*
 * layers.h - a writable layer over sealed ones: the private files of a sandbox that stays, and
 * the tree and git dir of a workspace.
 *
 * What was written becomes the base of other sandboxes without being copied: the writable
 * directories are exchanged with the empty ones of a new layer, which is sealed and lies below
 * from then on, also below as many others as are made of it. That takes the same time however
 * much was written. No sandbox may have the layers mounted meanwhile.
 *
 * Private files have one part, "upper"; a workspace has a second one, "gitupper", unless it is
 * a folder's. The sealed layers are locked as long as this is open, so no sweep removes them.
 */
#pragma once
#include "base/auto.h"
#include "layer/layer.h"
#include "runtime/runtime.h"

struct carrel_error;
struct workspace;

enum layers_part { LAYERS_TREE, LAYERS_GIT, LAYERS_PARTS };

struct layers {
    char *state;          /* the state directory */
    struct workspace *ws; /* has the writable directories; its record names the sealed layers */
    struct layer top;     /* has the writable directories where there is no workspace */
    char *space;          /* the writable directories are here instead; NULL: they are not */
    int space_dir;        /* the same, open */
    struct layer *sealed; /* topmost first */
    size_t n_sealed;
    size_t n_parts;
    const char *const *base[LAYERS_PARTS]; /* trees below all layers; not owned */
    const char **lower[LAYERS_PARTS];      /* the sealed layers, then the base */
    struct sandbox_overlay overlay[LAYERS_PARTS];
};

/*
 * Opens sealed layers, over which nothing can be written yet. `base` and `git_base` are
 * NULL-terminated; `git_base` NULL: there is no second part. -ENOENT: a layer is missing.
 */
int layers_open(const char *state, const struct layer_list *list, const char *const *base,
        const char *const *git_base, struct layers **out, struct carrel_error *err);

/* Writes go to the directories of `ws`, which must outlive the layers. */
void layers_use_workspace(struct layers *layers, struct workspace *ws);

/* From now on writes go to the directory `dir`, whose path is `space`: it has the parts, and
 * cannot be sealed. */
int layers_use_space(
        struct layers *layers, const char *space, int dir, struct carrel_error *err);
void layers_leave_space(struct layers *layers); /* back to its own directories */

/* Layers of private files: `list` (NULL: none), and a new writable layer over it. */
int layers_make(const struct layer_list *list, const char *const *base, struct layers **out,
        struct carrel_error *err);

/* Unlocks the layers. A writable one that is no workspace's is removed. */
void layers_free(struct layers *layers); /* NULL is fine */
DEFINE_AUTO(struct layers *, layers_free)

/*
 * Seals what was written (not with layers_use_space()); this changes the overlays, even if it
 * fails. First the record of a workspace names the new layer, which shows nothing as long as it
 * is empty; then each pair of directories is exchanged in one step. So a crash in between loses
 * nothing and leaves nothing to repair.
 */
int layers_seal(struct layers *layers, struct carrel_error *err);

/* A sealed, locked copy of what was written since the last seal; the sandbox is paused. */
int layers_copy(const struct layers *layers, struct layer *out, struct carrel_error *err);

/* The sealed layers, and above them `copy` unless it is NULL. -E2BIG: too many. */
int layers_list(const struct layers *layers, const struct layer *copy, struct layer_list *out,
        struct carrel_error *err);

/* The descriptors that lock the sealed layers, LAYER_MAX_CHAIN at most. Returns how many. */
size_t layers_locks(const struct layers *layers, int *locks);
