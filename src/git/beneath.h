/*
 * beneath.h - paths inside a tree that may hold links and mounts of anybody's making.
 *
 * The kernel does the containment: no link is followed in any component, no mount is crossed,
 * nothing leads above the root. `path` is relative; its last component is never looked through.
 */
#pragma once
#include "base/fd.h"
#include <sys/stat.h>

/* The directory that holds `path`, as an O_PATH descriptor; *name points into `path`. -ENOENT:
 * not there; -ENOTDIR, -ELOOP: a file or a link is where a directory should be; -EXDEV: mount.
 */
int beneath_parent(int root, const char *path, const char **name);

/* The same; directories that are missing are made. */
int beneath_make_parent(int root, const char *path, const char **name);

/* Removes the directories above `path` that are empty, deepest first, never the root itself. */
void beneath_prune_parents(int root, const char *path);

/* lstat. */
int beneath_stat(int root, const char *path, struct stat *st);
