/*
 * exported.h - a workspace as a directory on the host, where unmodified git works.
 *
 * It is a checkout of the run's branch, as git itself writes files (see scratch_take_form()):
 * no filter of the user's sees what a run made until the user's own git does. While the
 * workspace is opened the repository knows it as a worktree, locked so that `git worktree`
 * prune, repair and remove leave it alone. Before and after, the repository has no worktree.
 */
#pragma once
#include "workspace/workspace.h"

/*
 * Makes the directory: `at` (absolute; must not exist) or, with NULL, the usual place. `path`
 * receives it. The caller holds the lock; what the run did must be on its branch, which is made
 * at base when there is nothing. -EEXIST: it is opened already, `path` says where. A directory
 * that an earlier crash left half made is made anew.
 */
int opened_open(struct workspace *ws, const struct repo *repo, const char *at, char *path,
        size_t size, struct carrel_error *err);

/*
 * Takes it away again. Commits that were made there are on the branch, and the workspace's
 * snapshot follows them; without any, a branch at base is removed. -ENOTEMPTY: there are
 * changes that are not committed, or another branch is checked out; the message says what to
 * do. A directory that is gone already is fine.
 */
int opened_close(struct workspace *ws, const struct repo *repo, struct carrel_error *err);

/* Records one as closed whose directory is gone. */
int opened_forget(struct workspace *ws, struct carrel_error *err);

/* Makes the repository know an opened one again, if it does not. Returns 1 when it did not. */
int opened_repair(struct workspace *ws, const struct repo *repo, struct carrel_error *err);
