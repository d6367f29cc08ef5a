/* apply.h - brings a result into the user's work tree, all of it or none. */
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
    size_t n_submodules;  /* now recorded at another commit; their work trees are unchanged */
    char commit[OID_MAX]; /* new HEAD of merge and cherry-pick; else empty */
    char *top;            /* the work tree */
    char *branch;         /* checked out there; NULL: none */
};
void apply_outcome_finish(struct apply_outcome *outcome);

/*
 * Brings base..tip into repo->top. For APPLY_FILES the objects may be in `quarantine` (if not
 * NULL); objects that a reference will name must be in the repository itself.
 *
 * A path that the user has not touched since base, or that already is as in tip, gets the
 * result; one that the user changed and committed is merged. Dirty or untracked paths are never
 * overwritten. On a conflict nothing is changed. If carrel is killed at any point, each file
 * has either its old or its new content, and the next call or apply_recover() restores
 * everything (or, if only the cleanup was left, finishes it).
 *
 * An existing file keeps its permission bits, except the executable bit if the result changes
 * it; a new file gets what git gives under the caller's umask.
 *
 * Files are converted as a checkout would, as far as git itself converts them: line ends,
 * encodings, idents. No hook runs, and no filter or driver runs on what the run made: a path
 * that a filter of the user would convert is a conflict. -EBUSY: a merge or rebase of the user
 * is in progress, or git holds the index lock.
 */
int apply_result(const struct repo *repo, const char *state, const char *quarantine,
        const char *base, const char *tip, enum apply_how how, struct apply_outcome *out,
        struct carrel_error *err);

/* Recovers from an apply that was killed. Returns 1 if there was one, else 0. */
int apply_recover(const struct repo *repo, struct carrel_error *err);
