/*
 * target.h - the work tree that an apply writes to.
 *
 * The name of a workspace means the same in every directory, and the user has many work trees.
 * So an apply writes to the work tree that the run began in, or to one that the caller names;
 * never to one only because it is the current directory.
 */
#pragma once

struct carrel_error;
struct repo;
struct worktree;

/* Opens the repository at the directory `dir` or above it, which the caller named: once, see
 * base/named.h. NULL: the current directory. */
int target_open(const char *dir, struct repo **out, struct carrel_error *err);

/*
 * Before an apply. `dir`: a directory of the work tree that gets the changes, as the caller
 * named it; NULL: that of the run. `here`: the caller's current directory; NULL: none. -EXDEV:
 * `dir` belongs to another repository than the workspace, or `here` does and no `dir` was
 * named.
 */
int target_choose(
        struct worktree *worktree, const char *dir, const char *here, struct carrel_error *err);

/* The repository with the work tree to write to. -ENOENT: that of the run no longer exists and
 * no other was chosen. -EINVAL: there is none, the repository is bare. */
int target_find(
        const struct worktree *worktree, const struct repo **out, struct carrel_error *err);
