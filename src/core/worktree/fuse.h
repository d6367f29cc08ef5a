/*
 * fuse.h - a copy-on-write tree by fuse-overlayfs, where the kernel's overlay does not work.
 *
 * It is mounted on the host, at <workspace>/tree, for as long as somebody has the workspace.
 * For ordinary users only: as root, files would have to change their owner on the way in, and a
 * FUSE file system cannot do that.
 */
#pragma once
#include <stdbool.h>

struct carrel_error;
struct worktree;
struct workspace;

/* Whether it is worth a try here, for this user. */
bool fuse_is_usable(void);

/* Mounts it. -ENOTSUP with what is missing. */
int fuse_mount(const struct worktree *place, struct carrel_error *err);

/* Takes the mount away, also one that a killed process left. No mount is fine. */
int fuse_unmount(const struct workspace *ws, struct carrel_error *err);
