/*
 * admin.h - what the repository knows of a workspace: worktrees/<id>/, locked for life.
 *
 * Without a worktree directory and without an index this state is accepted by git's list,
 * prune, repair, gc and fsck. `id` is "carrel-<task>+<run>": no id holds a plus, so the two can
 * be told apart again, and tasks may number their runs as they like.
 */
#pragma once
#include "git/repo.h"

/*
 * Brings it with locked ("carrel run <run>"), gitdir (path of the future .git file), commondir
 * and HEAD, all at once: git never sees half of it. Only for who has the run's branch. -EEXIST:
 * the id is taken. On failure nothing is left.
 */
int admin_create(const struct repo *repo, const char *task, const char *run,
        const char *worktree_git_file, const char *branch, struct carrel_error *err);

/* Takes it away, and `worktrees` itself when that was the last; also what a crash left of a
 * creation or removal. Gone is fine. */
int admin_remove(
        const struct repo *repo, const char *task, const char *run, struct carrel_error *err);

/* Path of the admin dir. */
int admin_path(const struct repo *repo, const char *task, const char *run, char *path,
        size_t size, struct carrel_error *err);

/* Where its worktree's .git file is or will be. -ENOENT: there is no such admin dir. */
int admin_gitdir(const struct repo *repo, const char *task, const char *run, char *path,
        size_t size, struct carrel_error *err);

/* The admin dirs of ours here: calls `each` with task and run of every one, until it fails. */
int admin_list(const struct repo *repo,
        int (*each)(const char *task, const char *run, void *context), void *context,
        struct carrel_error *err);

/* Whether HEAD of some worktree, the main one or a linked one, is on `branch` (a short name).
 */
bool admin_is_checked_out(const struct repo *repo, const char *branch);
