/*
 * remove.h - removes a workspace: its id is free again, its files and refs are removed.
 *
 * The rename into .tmp decides. The record of what is found there names the repository, and
 * every step can be done twice, so a sweep finishes what a crash interrupted.
 */
#pragma once
#include "workspace/place.h"
#include "workspace/workspace.h"

/*
 * Does all of it with a workspace that the caller has locked. `trashed` is its name in the
 * trash, or NULL: still in its place. A repository that is gone knows nothing of it any more;
 * one that cannot be opened for another reason is a failure before anything was done. -EAGAIN:
 * not yet, and nothing was done.
 */
int retire(const struct place *place, const struct workspace *ws, const char *trashed,
        enum place_end end, struct carrel_error *err);

/* Only the directory, when the repository knows nothing of it. */
int retire_files(
        const struct place *place, const struct workspace *ws, struct carrel_error *err);

/*
 * Removes a workspace that the caller has locked. A repository that does not exist any more
 * needs nothing; one that cannot be opened for another reason fails before anything was done.
 */
int retire_orphan(const struct place *place, const struct repo *repo, const char *task,
        const char *run, struct carrel_error *err);
