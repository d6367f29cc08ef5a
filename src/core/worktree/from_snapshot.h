/* from_snapshot.h - a new sandbox that begins with the files of a snapshot. */
#pragma once
#include "base/auto.h"
#include "core/worktree/fork.h"
#include "layer/snapshot.h"
#include <carrel/run.h>

struct carrel_error;

struct from_snapshot {
    struct snapshot snapshot;
    struct workspace *ws; /* that the sandbox of the snapshot had; NULL: none */
    struct worktree_origin origin;
    struct carrel_workspace_options workspace; /* of options that had none */
};
void from_snapshot_free(struct from_snapshot *from); /* NULL is fine */
DEFINE_AUTO(struct from_snapshot *, from_snapshot_free)

/*
 * Finds the snapshot and puts into the options what it was made on: an image, a workspace.
 * -EINVAL: they ask for another one. *out must live as long as the options.
 */
int from_snapshot_find(const char *name, struct carrel_run_options *options,
        struct from_snapshot **out, struct carrel_error *err);
