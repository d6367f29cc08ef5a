/* gitdir.h - access to a git dir through a descriptor. */
#pragma once
#include "base/buf.h"
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

struct carrel_error;

/* Opens a directory for lookups. Negative errno without a message. */
int gitdir_open(int at, const char *path);

/*
 * The path of an open directory according to the kernel: absolute, without links. Replaces
 * *out, which the caller owns.
 */
int gitdir_path(int fd, char **out, struct carrel_error *err);

/*
 * Reads a file of at most `max` bytes; `out` need not be initialised. Negative errno without a
 * message: it is often not an error.
 */
int gitdir_load(int dir, const char *name, size_t max, struct buf *out);

/*
 * Reads a small file that holds one path, without the newline. Negative errno as above;
 * -EBADMSG: no path.
 */
int gitdir_load_path(int dir, const char *name, char path[static PATH_MAX]);

/*
 * Whether `fd` is a git dir: it has a HEAD, objects and references. If so, *common is an open
 * descriptor of the directory with the latter two: a different one for a linked work tree, else
 * itself.
 */
bool gitdir_is_one(int fd, int *common);

/* --- all object directories of a repository --- */

/*
 * Canonical paths of the object directory below `common` (an open git dir), first, and of its
 * direct and indirect alternates; NULL at the end. A missing alternate is skipped, as git does.
 * On success the caller owns *out.
 */
int alternates_list(int common, char ***out, struct carrel_error *err);
void alternates_free(char **paths);
