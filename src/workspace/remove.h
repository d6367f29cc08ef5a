/*
 * remove.h - removes a workspace: its id is free again, its files and refs are removed.
 *
 * The rename into .tmp decides. The record of what is found there names the repository, and
 * every step can be done twice, so a sweep finishes what a crash interrupted.
 */
#pragma once
#include "workspace/workspace.h"

struct store;

/*
 * Removes a workspace that the caller has locked. A repository that does not exist any more
 * needs nothing; one that cannot be opened for another reason fails before anything was done.
 */
int remove_workspace(
        const struct store *store, const struct workspace *ws, struct carrel_error *err);

/* Removes all but the directory of one whose id is free already. */
int remove_finish(
        const struct store *store, const struct workspace *ws, struct carrel_error *err);

/* Removes the directory of a task that has no workspace. */
void remove_unused_task(const struct store *store, const char *task);
