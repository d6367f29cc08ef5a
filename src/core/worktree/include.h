/*
 * include.h - files of the user's that git does not track and a run needs all the same, such as
 * .env: by name or not at all.
 *
 * They are the user's, often secrets, and must not come back as a result. git inside is told to
 * ignore them, but a rule of the tree may say otherwise ("!.env") and the run may remove what
 * it was told. So a list is kept beside the run's files, and nothing on it is in a snapshot
 * unless the run's own commits have it.
 */
#pragma once
#include "git/repo.h"

struct carrel_error;
struct names;
struct worktree;
struct worktree_request;

/* Copies into `tree` what the options and the repository's .worktreeinclude name. */
int included_files(const struct worktree_request *q, struct worktree *worktree, int tree,
        struct carrel_error *err);

/* The list, sorted; empty when nothing was included. `out` is fresh. */
int included_read(const struct worktree *worktree, struct names *out, struct carrel_error *err);

/* Makes of the snapshot in the quarantine, a child of `tip`, one that has none of them. */
int included_leave_out(const struct worktree *worktree, const char *quarantine, const char *tip,
        char snapshot[static OID_MAX], struct carrel_error *err);
