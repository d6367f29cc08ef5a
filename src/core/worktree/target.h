/*
 * target.h - whose files an apply writes to.
 *
 * Names of workspaces are the same everywhere, and the user's files are many. So what is
 * written to is the work tree that the run began in, or the one that the caller names; never
 * one that only happens to be there.
 */
#pragma once

struct carrel_error;
struct repo;
struct worktree;

/*
 * Before an apply. `dir`: a directory of the work tree that gets the changes, as the caller
 * named it; NULL: that of the run. `here`: where the caller stands; NULL: nowhere. -EXDEV:
 * `dir` belongs to another repository than the workspace, or `here` does and no `dir` was
 * named.
 */
int target_choose(
        struct worktree *worktree, const char *dir, const char *here, struct carrel_error *err);

/* The repository with the work tree to write to. -ENOENT: that of the run is not there any
 * more and no other was chosen. -EINVAL: there is none, the repository is bare. */
int target_find(
        const struct worktree *worktree, const struct repo **out, struct carrel_error *err);
