/* apply_tree.h - the mount tree while it is being built; for apply.c and apply_disk.c alone. */
#pragma once
#include "base/err.h"
#include "runtime/local/plan.h"
#include <errno.h>
#include <stdbool.h>
#include <sys/types.h>

struct skeleton;

#define SPACE_PATH                                                                             \
    "/proc" /* of the host's root, where the private space is until we leave it */

struct tree {
    const struct plan *plan;
    const int *mount_fds;
    const struct skeleton *skeleton;
    int space;      /* top of the tmpfs */
    int places;     /* its directory "space" */
    int root;       /* the new root */
    int made;       /* where the skeleton's steps make things: the root, if that is ours */
    int disk;       /* the overlay of the plan's disk; -1: none */
    dev_t dev;      /* of the tmpfs: what is ours to create in */
    dev_t disk_dev; /* the same of the disk; 0: none */
    unsigned n_places;
    struct carrel_error *err;
};

static inline int tree_fail(struct tree *tree, const char *doing, const char *path)
{
    return err_set_errno(tree->err, -errno, "%s '%s'", doing, path);
}

/* Makes the overlay on disk, if the plan has one, and attaches it: as the new root, or aside.
 */
int disk_open(struct tree *tree);

int disk_point(struct tree *tree, const struct step *step);
int disk_ensure(struct tree *tree, const struct step *step);

/* Opens the directory of the disk that is to be mounted at the step's path. */
int disk_open_place(struct tree *tree, const struct step *step);

/*
 * Opens the file of another root that the step lays its own over; one that a root on disk has
 * not is made there. -ENOENT: the other root does without it.
 */
int disk_open_covered(struct tree *tree, const struct step *step);

/*
 * Opens the place for a mount of the caller, creating what is missing.
 *
 * The path may lead through a directory that an earlier run could write to, and that run may
 * have left a link where a directory was. So no component may be a link, and we create only
 * where all is the sandbox's own: never in a directory of the host.
 */
int disk_open_target(struct tree *tree, const char *path, bool is_dir);
