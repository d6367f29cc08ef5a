/*
 * apply.h - a result reaches the user's checked-out tree, all of it or none.
 */
#pragma once
#include "git/repo.h"
#include <stdbool.h>

struct carrel_error;

enum apply_how {
    APPLY_FILES,       /* into the work tree, uncommitted; HEAD and index content stay */
    APPLY_MERGE,       /* git merge of the branch (fast-forward where possible) */
    APPLY_SQUASH,      /* its changes as staged changes */
    APPLY_CHERRY_PICK, /* each commit of the run on top of HEAD */
};

struct apply_conflict {
    char *path;
    const char *why; /* "changed in your tree", "does not apply", "untracked file in the way" */
};
struct apply_outcome {
    struct apply_conflict *conflicts; /* not empty: nothing was changed */
    size_t n_conflicts;
    size_t n_files;       /* that were changed */
    size_t n_submodules;  /* recorded elsewhere now; what they have checked out is as before */
    char commit[OID_MAX]; /* new HEAD of merge and cherry-pick; else empty */
    char *top;            /* the work tree that this is about */
    char *branch;         /* checked out there; NULL: none */
};
void apply_outcome_finish(struct apply_outcome *outcome);

/*
 * Brings base..tip into repo->top. For APPLY_FILES the objects may be in `quarantine` (if not
 * NULL); what git is to keep a reference to must be in the repository itself.
 *
 * A path that the user has not touched since base, or that already is as in tip, just gets the
 * result; one that the user changed and committed is merged. Never over paths that are dirty or
 * untracked there; conflicts are reported and nothing is half-done: also when killed at any
 * point, either the old or the new content of each file is there, `git status` tells, and the
 * next call or apply_recover() puts everything back (or, if only cleaning up was left,
 * finishes).
 *
 * A file that is there keeps its permission bits, but for the executable one where the result
 * changes that; a new one has what git gives under the caller's umask.
 *
 * Files are written as a checkout of the result would as far as git itself converts them: line
 * ends, encodings, idents. Runs no hook, and no filter or driver on what the run made: a path
 * that a filter of the user's would convert is a conflict.
 * -EBUSY: a merge or rebase of the user's is not finished, or git holds the index.
 */
int apply_result(const struct repo *repo, const char *quarantine, const char *base,
        const char *tip, enum apply_how how, struct apply_outcome *out,
        struct carrel_error *err);

/* Puts right what an apply that was killed left. Returns 1 if there was something, else 0. */
int apply_recover(const struct repo *repo, struct carrel_error *err);
