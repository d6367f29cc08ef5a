/*
 * redirect.h - a git dir may say that its parts are elsewhere; only what points back is
 * believed.
 *
 * A `.git` file, `commondir` and core.worktree are a line of text each, which a run may have
 * left. The place that such a line names was not written by the run, unless it could write
 * there as well: if that place names the one where the line was found, its owner wanted the two
 * to belong together.
 */
#pragma once
#include "git/repo.h"

struct carrel_error;
struct repo_format;

/* Refuses a `commondir` that makes the open `git_dir` part of another repository: it counts
 * only in worktrees/<id> of the git dir that it names, `common`. */
int redirect_check_common(int git_dir, int common, struct carrel_error *err);

/*
 * Refuses the git dir of a work tree that was found by its `.git`, if that is a file, leads out
 * of the work tree and nothing leads back; and a core.worktree outside of it. Sets repo->top to
 * the one that counts. Where the git dir itself was found, repo->top becomes the work tree that
 * leads to it, or NULL.
 */
int redirect_settle_top(struct repo *repo, int git_dir, const struct repo_format *format,
        struct carrel_error *err);
