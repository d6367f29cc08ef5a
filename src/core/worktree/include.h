/*
 * include.h - untracked files of the user that a run needs, such as .env; copied only by name.
 *
 * They are often secrets and must not be part of a result. git in the sandbox is told to ignore
 * them, but a rule of the tree may say otherwise ("!.env"), and the run may remove that
 * setting. So a list is kept where no run can write, and nothing on it is in a snapshot unless
 * the run's own commits have it.
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

/* The list, sorted; empty if nothing was included. `out` is fresh. */
int included_read(const struct worktree *worktree, struct names *out, struct carrel_error *err);

/* Makes of the snapshot in the quarantine, a child of `tip`, one that has none of them. */
int included_leave_out(const struct worktree *worktree, const char *quarantine, const char *tip,
        char snapshot[static OID_MAX], struct carrel_error *err);
