/* gitdir.h - access to a git dir through a descriptor. */
#pragma once
#include "base/buf.h"
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

struct carrel_error;

/* Opens a directory for lookups. Negative errno without a message. */
int gitdir_open(int at, const char *path);

/* Opens the directory of which `path` is the canonical path, for reading: -ELOOP if a component
 * has become a link. Negative errno without a message. */
int gitdir_reopen(const char *path);

/*
 * Opens a regular file for reading: below `dir`, or in the directory of which `dir` is the
 * canonical path. No component is a link (-ELOOP), a FIFO or a device never blocks (-EINVAL).
 * Negative errno without a message.
 */
int gitdir_open_file(int dir, const char *name);
int gitdir_open_file_in(const char *dir, const char *name);

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

/* Adds such a file to `out`, which has its maximum. */
int gitdir_load_from(const char *dir, const char *name, struct buf *out);

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

/*
 * Refuses a git dir in which a name that carrel or git uses is a link, or something that is
 * neither file nor directory where one of these is expected. A run may have had it writable.
 */
int gitdir_check(int dir, struct carrel_error *err);

/* --- all object directories of a repository --- */

/*
 * Canonical paths of the object directory below `common` (an open git dir), first, and of its
 * direct and indirect alternates; NULL at the end. A missing alternate is skipped, as git does.
 * One that is not the "objects" of a git dir with the owner of `common` is -EPERM: the list may
 * be a run's work, and what is in it is shown to the next run.
 * *fds are these directories, open (O_PATH): what was checked, whatever the paths lead to
 * later. On success the caller owns both.
 */
int alternates_list(int common, char ***paths, int **fds, struct carrel_error *err);
void alternates_free(char **paths, int *fds);

/* Opens a canonical path that was on such a list earlier, with the same check. `common`: a git
 * dir. */
int alternates_open(const char *path, const char *common, struct carrel_error *err);
