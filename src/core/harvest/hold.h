/* hold.h - takes the lock of a workspace, as every verb does first. */
#pragma once
#include "workspace/workspace.h"

struct carrel_error;
struct oddity;
struct repo;
struct worktree;

/* Finds the workspace and locks it. */
int workspaces_hold(const char *name, struct workspace **out, struct carrel_error *err);

/*
 * The same, with its repository and tree; harvests it if its run was killed before that.
 * `oddities` may be NULL.
 */
int workspaces_hold_worktree(const char *name, struct worktree **out, struct oddity **oddities,
        size_t *n_oddities, struct carrel_error *err);

/*
 * Explains a failure. The run's branch keeps the base from git gc; if the user deleted it and
 * gc removed the base, git cannot say what the run changed.
 */
int workspaces_explain(const struct repo *repo, const struct workspace *ws, int code,
        struct carrel_error *err);

/* All of its present work was applied to the user's files. */
bool workspaces_is_applied(const struct workspace *ws);

/* Its work was committed, but the user has since deleted or reset the branch. */
bool workspaces_is_withdrawn(const struct workspace *ws);
