/*
 * remove.h - a workspace goes: its id is free again, the repository forgets it, its files go.
 *
 * The rename into the trash decides. Whoever finds something there finishes it: the end of its
 * name says what is still to be done (place.h), its record whose it was. Who works on it holds
 * a flock on the directory itself, because the file `lock` goes with the others.
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
 * Makes the repository forget an admin dir of this place whose workspace is gone, with its
 * branch if another ref leads to the same commit. Returns 1, or 0 when it is no such thing.
 * -EAGAIN: the gate is in use.
 */
int retire_orphan(const struct place *place, const struct repo *repo, const char *task,
        const char *run, struct carrel_error *err);
