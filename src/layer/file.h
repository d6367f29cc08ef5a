/* file.h - one file of a layer, copied into another; for this folder alone. */
#pragma once
#include "base/fd.h"
#include <stdbool.h>
#include <sys/stat.h>

/*
 * Opens `name` in `dir` for reading; `st` says that it is a file or directory of ours. If its
 * mode forbids that, the mode is changed: briefly, or for a directory until file_restore().
 * Negative errno.
 */
int file_open(int dir, const char *name, const struct stat *st);
bool file_is_shut(const struct stat *st); /* a directory that its owner may not read */
int file_restore(int fd, const struct stat *st);

/*
 * A copy of a regular file as `name` in `to`: data (shared where the file system can, holes as
 * holes), attributes, mode, owner, times. Negative errno.
 */
int file_copy(int from, const char *name, const struct stat *st, int to);

/* The same for what is neither a regular file nor a directory. */
int file_copy_special(int from, const char *name, const struct stat *st, int to);

/* Attributes that programs set, but none that an overlay keeps for itself, and none that the
 * file system of `to` has no room for. */
int file_copy_attributes(int from, int to);

/* Owner, mode and times, after all else. */
int file_finish(int fd, const struct stat *st);
