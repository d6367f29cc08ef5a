/* dirty.h - commits the user's uncommitted work, as the start of a run. */
#pragma once
#include "git/repo.h"

/*
 * A commit of the current state of the tracked files, staged or not, on top of HEAD; HEAD
 * itself if nothing changed. No reference, index or file of the user is changed; the commit is
 * an unreferenced object. Untracked files are the task of include.h.
 */
int dirty_commit(const struct repo *repo, char oid[static OID_MAX], struct carrel_error *err);
