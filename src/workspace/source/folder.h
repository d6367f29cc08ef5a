/*
 * folder.h - a folder without git as a repository that nobody sees.
 *
 *   <state>/folders/<key>/.git/       private to the user, one for each folder; its
 *                                     core.worktree is the folder
 *       index                         persists, so the next snapshot reads only changed files
 *       empty/<commit>                the empty directories, which git does not know
 */
#pragma once
#include "git/repo.h"

/*
 * Takes the folder `dir` as it is: every file, ignored or not, byte by byte, without any
 * conversion. `hidden` is the repository, with the folder as its `top`, so apply_result() can
 * bring a result back (take a new snapshot first: what is there then counts as committed).
 * -EEXIST: a repository is in it or it is one itself; the message says what to do.
 */
int folder_snapshot(const char *state, const char *dir, struct repo **hidden,
        char commit[static OID_MAX], struct carrel_error *err);

/* Makes the empty directories of that snapshot below `tree`; those that exist are fine. */
int folder_make_empty(
        const struct repo *hidden, const char *commit, int tree, struct carrel_error *err);
