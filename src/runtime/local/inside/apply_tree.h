/* apply_tree.h - the mount tree under construction; only for apply.c and apply_disk.c. */
#pragma once
#include "base/err.h"
#include "runtime/local/plan.h"
#include <errno.h>
#include <stdbool.h>
#include <sys/types.h>

struct skeleton;

#define SPACE_PATH                                                                             \
    "/proc" /* of the host's root, where the private space is attached until we leave it */

struct tree {
    const struct plan *plan;
    const int *mount_fds;
    const struct skeleton *skeleton;
    int space;      /* top of the tmpfs */
    int places;     /* its directory "space" */
    int root;       /* the new root */
    int made;       /* where the skeleton's steps create: the root, if that is ours */
    int disk;       /* the overlay of the plan's disk; -1: none */
    dev_t dev;      /* of the tmpfs: we may create only there ... */
    dev_t disk_dev; /* ... and on the disk; 0: none */
    unsigned n_places;
    struct carrel_error *err;
};

static inline int tree_fail(struct tree *tree, const char *doing, const char *path)
{
    return err_set_errno(tree->err, -errno, "%s '%s'", doing, path);
}

/*
 * Mounts the overlay on disk, if the plan has one, and attaches it: as the new root, or aside.
 */
int disk_open(struct tree *tree);

int disk_point(struct tree *tree, const struct step *step);
int disk_ensure(struct tree *tree, const struct step *step);

/* Opens the directory of the disk to be mounted at the step's path. */
int disk_open_place(struct tree *tree, const struct step *step);

/*
 * Opens the file of another root that the step covers; in a root on disk it is created if it is
 * missing. -ENOENT: the other root has no such file.
 */
int disk_open_covered(struct tree *tree, const struct step *step);

/*
 * Opens the target of a mount of the caller, and creates what is missing.
 *
 * The path may lead through a directory that an earlier run could write to, and that run may
 * have replaced a directory by a link. So no component may be a link, and we create only where
 * everything belongs to the sandbox: never in a directory of the host.
 */
int disk_open_target(struct tree *tree, const char *path, bool is_dir);
