/* tree_kind.h - how the tree of a workspace can be shown on this machine. */
#pragma once
#include "workspace/workspace.h"
#include <stdbool.h>

struct carrel_error;
struct worktree_request;

/* Which kind of tree the options ask for or, left open, the first that works here. A kind that
 * was asked for by name and does not work is -ENOTSUP with what is missing. */
int tree_kind_choose(const struct worktree_request *q, const char *state,
        enum workspace_mode *mode, struct carrel_error *err);

/* True when an overlay worked here since the machine started. `err` says why not. */
bool tree_kind_has_overlay(
        const struct worktree_request *q, const char *state, struct carrel_error *err);
