/* dirty.h - the user's uncommitted work as a commit to start from. */
#pragma once
#include "git/repo.h"

/*
 * A commit of what the tracked files are now, staged or not, on top of HEAD; HEAD itself when
 * nothing is changed. No reference, no index and no file of the user's is touched; the commit
 * is an object that nothing refers to yet. Untracked files are include.h's.
 */
int dirty_commit(const struct repo *repo, char oid[static OID_MAX], struct carrel_error *err);
