/*
 * prepare.h - what must be there before a workspace can be made in constant time: the commit's
 * pristine tree in the cache, a layer with the project's dependencies.
 */
#pragma once
#include "workspace/workspace.h"

struct carrel_error;
struct worktree;
struct worktree_request;

/* The commit's entry in the cache; filled if it is not there. */
int prepare_checkout(const struct worktree_request *q, const char *state,
        const struct repo *repo, const char *commit, struct checkout **out,
        struct carrel_error *err);

/* For a workspace that is there: its commit may have been evicted meanwhile. */
int prepare_again(const struct worktree_request *q, const char *state,
        const struct workspace *ws, struct carrel_error *err);

/*
 * Whether no reference but branches of runs has the commit: 1 or 0. What such a commit has in
 * it is a run's word: the user's filters do not see it, and no setup of it serves other
 * commits.
 */
int prepare_is_of_run(const struct worktree_request *q, const struct repo *repo,
        const char *commit, struct carrel_error *err);

/* Runs the setup command once for its key, without the agent, and keeps what it made. */
int prepare_setup(const struct worktree_request *q, struct worktree *worktree,
        const char *commit, char key[static OID_MAX], struct carrel_error *err);

/* What is not an overlay is filled now; files that the options include are copied. */
int prepare_tree(
        const struct worktree_request *q, struct worktree *worktree, struct carrel_error *err);
