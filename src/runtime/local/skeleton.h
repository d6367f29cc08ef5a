/*
 * skeleton.h - the directories, links and small files of a root, created once for many
 * sandboxes.
 *
 * Everything that a plan would create in the new root is the same from run to run. So it is
 * created once, in a directory whose name is the hash of its content: it cannot be out of date.
 * Sandboxes get read-only mounts of it and mount everything else over its empty directories. It
 * belongs to the host's root, which no id inside is; what a program could change is elsewhere.
 * For root only.
 *
 * A sandbox that uses one has taken a slot before. That is how a sweep knows that none is in
 * use: a removal would also remove the mounts of a living sandbox.
 */
#pragma once

struct carrel_error;
struct plan;

/*
 * Detached mounts, with all their restrictions. -1: there is none, the child builds the root.
 */
struct skeleton {
    int root;
    int dev; /* the part with the device nodes: not nodev */
};
#define SKELETON_INIT                                                                          \
    (struct skeleton)                                                                          \
    {                                                                                          \
        .root = -1, .dev = -1                                                                  \
    }

/*
 * Mounts of what the plan would create, from the directory `dir` (see rundir.h). None, and 0,
 * if the plan cannot share it, or if it can be neither found nor created (a full disk, a
 * read-only directory, too many of them): everything works without it, only slower.
 */
int skeleton_open(
        struct skeleton *skeleton, int dir, const struct plan *plan, struct carrel_error *err);
void skeleton_close(struct skeleton *skeleton);

/* Removes all of them, if no sandbox is alive that could use one. */
int skeleton_sweep(int dir, struct carrel_error *err);
