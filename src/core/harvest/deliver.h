/* deliver.h - from a workspace's picture to the user's repository and files. */
#pragma once
#include "workspace/apply/apply.h"

struct carrel_error;
struct worktree;

/*
 * Puts the snapshot on the run's branch: objects into the repository, one ref moves. `message`:
 * for the commit of what was not committed; NULL: a line of ours. One that is on the branch
 * already is made again for a message, or -EEXIST where another branch has it. It names `seal`,
 * the head of the run's journal, in a trailer (empty: none). -EEXIST as well
 * where the user has a branch of that name. The caller holds the lock and took a picture.
 */
int deliver_commit(struct worktree *worktree, const char *message, const char *seal,
        char commit[static OID_MAX], struct carrel_error *err);

/*
 * Puts the commits that the run made itself on its branch, at the end of the run. Nothing to do
 * without any, and where the branch has more than they follow.
 */
int deliver_branch(struct worktree *worktree, struct carrel_error *err);

/* Brings the changes into the user's work tree; see apply.h. Merges commit first. What reached
 * the files whole is recorded as applied. */
int deliver_apply(struct worktree *worktree, enum apply_how how, const char *seal,
        struct apply_outcome *out, struct carrel_error *err);

/* After a new picture: if its files are those that were applied, it still is. */
void deliver_recognise(struct worktree *worktree);
