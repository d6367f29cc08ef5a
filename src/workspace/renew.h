/*
 * renew.h - the work directories of a workspace between two sandboxes.
 *
 * Overlays are mounted volatile: nothing waits for the disk, and the kernel leaves a mark in
 * the work directory that refuses the next mount. After an orderly end we make the directory
 * anew.
 */
#pragma once
#include <stdbool.h>

struct carrel_error;
struct workspace;

/* Before a sandbox gets the workspace: remembers under which boot of the machine that was, and
 * that an earlier harvest does not have what comes now. */
int workspace_begin_use(struct workspace *ws, struct carrel_error *err);

/* After an orderly end: what was written reaches the disk, and the work directories are made
 * anew. `is_changed`: there is something to write. */
int workspace_end_use(struct workspace *ws, bool is_changed, struct carrel_error *err);

/* Whether a process holds its lock just now, be it this one. */
bool workspace_is_in_use(const struct workspace *ws);

/* Before it is used again, whatever happened: if the machine stopped under the last sandbox,
 * the note says that files may be short. */
int workspace_renew(struct workspace *ws, struct carrel_error *err);
