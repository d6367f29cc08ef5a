/*
 * shallow.h - a repository with one commit: what a run sees that must not see other branches.
 *
 *   <state>/cuts/<repo key>/<commit>/     an object directory with one pack
 */
#pragma once
#include <stddef.h>

struct carrel_error;
struct worktree;

/* Path of the object directory. */
int shallow_path(
        const struct worktree *worktree, char *path, size_t size, struct carrel_error *err);

/* Makes it if it is not there, and fits the private git dir to it: no other refs, no parents.
 */
int shallow_make(struct worktree *worktree, struct carrel_error *err);
