/*
 * folder.h - keeps a folder without git as a hidden repository.
 *
 *   <state>/folders/<key>/.git/       private to the user, one for each folder; its
 *                                     core.worktree is the folder, for other gits
 *       index                         persists, so the next snapshot reads only changed files
 *       empty/<commit>                the empty directories, which git does not record
 */
#pragma once
#include "git/repo.h"

/*
 * Commits the open folder `dir` unchanged: every file, ignored or not, byte by byte, without
 * any conversion. `hidden` is the repository, with the folder as its `top`, so that
 * apply_result() can bring a result back (take a new snapshot first: its content counts as
 * committed). Git reads it by its path, where the folder must stay meanwhile. -ESTALE: it is
 * not there; -EEXIST: a repository is in it or it is one itself; the message says what to do.
 */
int folder_snapshot(const char *state, int dir, struct repo **hidden,
        char commit[static OID_MAX], struct carrel_error *err);

/* Creates the empty directories of that snapshot below `tree`, if they do not exist. */
int folder_make_empty(
        const struct repo *hidden, const char *commit, int tree, struct carrel_error *err);
