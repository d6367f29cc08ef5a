/* deliver.h - from a harvest to the user's repository and files. */
#pragma once
#include "workspace/apply/apply.h"

struct carrel_error;
struct worktree;

/*
 * Puts the snapshot on the run's branch: objects into the repository, then one ref. `message`
 * is for the commit of uncommitted work; NULL: a default. If that commit is on the branch
 * already, a message makes a new one of it. It names `seal`, the head of the run's journal, in
 * a trailer (empty: none). -EEXIST: another branch has the commit, or the user has a branch of
 * the run's name. The caller holds the lock and has harvested.
 */
int deliver_commit(struct worktree *worktree, const char *message, const char *seal,
        char commit[static OID_MAX], struct carrel_error *err);

/*
 * Puts the run's own commits on its branch, at the end of the run. Does nothing if there are
 * none, or if the branch has commits that they do not follow.
 */
int deliver_branch(struct worktree *worktree, struct carrel_error *err);

/* Writes the changes into the user's work tree; see apply.h. Merges commit first. If all
 * changes were written, the work is recorded as applied. */
int deliver_apply(struct worktree *worktree, enum apply_how how, const char *seal,
        struct apply_outcome *out, struct carrel_error *err);

/* After a new harvest: if its files are those that were applied, it stays applied. */
void deliver_recognise(struct worktree *worktree);
