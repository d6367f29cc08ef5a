/*
 * fork.h - workspaces on layers: what one wrote becomes the base of others.
 *
 * A fork is a workspace of the same commit, with ids and a branch of its own, that lies on the
 * sealed layers of another workspace; that one continues with empty directories on top of them.
 */
#pragma once
#include "core/worktree/worktree.h"

struct carrel_error;
struct layer;

/* -ENOTSUP: its tree is not an overlay. */
int restack_check(const struct workspace *ws, struct carrel_error *err);

/*
 * Seals what the workspace wrote; nothing has it mounted, and the caller has its lock. Its
 * mounts are others afterwards. -ENOTSUP: its tree is not an overlay.
 */
int worktree_seal(struct worktree *place, struct carrel_error *err);

/* A sealed copy of what it wrote since the last seal, while its programs are paused. Held. */
int restack_copy(const struct worktree *place, struct layer *out, struct carrel_error *err);

/* The workspace that a fork begins with. */
struct worktree_origin {
    const struct workspace *ws;
    char *layers; /* as in a record: of what it lies on, and above that a copy if there is one
                   */
};
void restack_origin_finish(struct worktree_origin origin);
DEFINE_AUTO(struct worktree_origin, restack_origin_finish)

/* `copy` may be NULL: it was sealed. `ws` must outlive it. */
int restack_origin(const struct workspace *ws, const struct layer *copy,
        struct worktree_origin *out, struct carrel_error *err);

/*
 * Makes the workspace of `request` as a fork; worktree->state is set. -ENOENT: a layer is gone.
 */
int worktree_fork(const struct worktree_request *request, const struct worktree_origin *origin,
        struct worktree *place, struct carrel_error *err);

/* What layers all workspaces lie on, for layer_sweep(). */
struct layer_names;
int restack_names(struct layer_names *names, void *state, struct carrel_error *err);

/* workspace_discard(), and the layers that only this workspace had. */
int restack_discard(const char *state, struct workspace *ws, struct carrel_error *err);
