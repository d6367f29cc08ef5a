/*
 * beneath.h - paths inside a tree with untrusted links and mounts.
 *
 * The kernel enforces the containment: no link is followed in any component, no mount is
 * crossed, nothing leads above the root. `path` is relative; its last component is never
 * followed.
 */
#pragma once
#include "base/fd.h"
#include <sys/stat.h>

/*
 * The parent directory of `path`, as an O_PATH descriptor; *name points into `path`. -ENOENT:
 * missing; -ENOTDIR, -ELOOP: a component is a file or a link; -EXDEV: mount.
 */
int beneath_parent(int root, const char *path, const char **name);

/* The same; missing directories are created. */
int beneath_make_parent(int root, const char *path, const char **name);

/* Removes the directories above `path` that are empty, deepest first, never the root itself. */
void beneath_prune_parents(int root, const char *path);

/* lstat. */
int beneath_stat(int root, const char *path, struct stat *st);
