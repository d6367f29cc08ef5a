/* hold.h - what every verb on a workspace begins with: holding its lock.
 */
#pragma once
#include "workspace/workspace.h"

struct carrel_error;
struct oddity;
struct repo;
struct worktree;

/* The workspace, held by us. */
int workspaces_hold(const char *name, struct workspace **out, struct carrel_error *err);

/*
 * That, with its repository and tree; and a picture, when its run was killed before one.
 * `oddities` may be NULL.
 */
int workspaces_hold_worktree(const char *name, struct worktree **out, struct oddity **oddities,
        size_t *n_oddities, struct carrel_error *err);

/*
 * What a failure means. The branch keeps the commit that the run began with; without it, a gc
 * takes that where nothing else has it, and no git can say what the run changed.
 */
int workspaces_explain(const struct repo *repo, const struct workspace *ws, int code,
        struct carrel_error *err);

/* As it is now, all of it is in the user's files; or was, when they said apply. */
bool workspaces_is_applied(const struct workspace *ws);

/* The user may have deleted or reset the branch since: what no ref leads to is soon gone. */
bool workspaces_is_withdrawn(const struct workspace *ws);
