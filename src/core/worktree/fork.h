/*
 * fork.h - workspaces on layers: what one wrote becomes the base of others.
 *
 * A fork is a workspace of the same commit, with ids and a branch of its own, that lies on the
 * sealed layers of another workspace; that one continues with empty directories on top of them.
 */
#pragma once
#include "core/worktree/worktree.h"
#include "layer/layer.h"

struct carrel_error;

/* -ENOTSUP: its tree is not an overlay. */
int worktree_check_fork(const struct workspace *ws, struct carrel_error *err);

/*
 * Seals what the workspace wrote; nothing has it mounted, and the caller has its lock. Changes
 * its mounts. -ENOTSUP: its tree is not an overlay.
 */
int worktree_seal(struct worktree *worktree, struct carrel_error *err);

/* The workspace that a fork begins with. `ws` must outlive it. */
struct worktree_origin {
    const struct workspace *ws;
    struct layer_list layers;
};

/*
 * Makes the workspace of `request` as a fork; worktree->state is set. -ENOENT: no such layer.
 */
int worktree_fork(const struct worktree_request *request, const struct worktree_origin *origin,
        struct worktree *worktree, struct carrel_error *err);
