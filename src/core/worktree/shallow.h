/*
 * shallow.h - a repository with one commit, for a run that must not see other branches.
 *
 *   <state>/cuts/<repo key>/<commit>/objects/     one pack; see workspace/cache/expiry.h
 */
#pragma once
#include <stddef.h>

struct carrel_error;
struct worktree;

/* Path of the object directory. */
int shallow_path(
        const struct worktree *worktree, char *path, size_t size, struct carrel_error *err);

/* Makes it if it is missing, and adapts the private git dir: no other refs, no parents. */
int shallow_make(struct worktree *worktree, struct carrel_error *err);
