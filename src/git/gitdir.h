/* gitdir.h - the directory that git keeps a repository in, looked at through a descriptor. */
#pragma once
#include "base/buf.h"
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

struct carrel_error;

/* Opens a directory to look things up in. Negative errno without a message. */
int gitdir_open(int at, const char *path);

/*
 * The path of an open directory as the kernel knows it: absolute, without links. Replaces *out,
 * which the caller owns.
 */
int gitdir_path(int fd, char **out, struct carrel_error *err);

/* Reads a file of at most `max` bytes; `out` need not be set up. Negative errno without a
 * message: often it is fine. */
int gitdir_load(int dir, const char *name, size_t max, struct buf *out);

/* Reads a small file that holds one path, without the line end. Negative errno as above;
 * -EBADMSG: there is no path in it. */
int gitdir_load_path(int dir, const char *name, char path[static PATH_MAX]);

/*
 * Whether `fd` is a git dir: it has a HEAD, objects and references. If so, *common is the
 * directory that holds the latter two, open: another one for a linked work tree, else itself.
 */
bool gitdir_is_one(int fd, int *common);
