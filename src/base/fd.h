/* fd.h - owned descriptors, always close-on-exec; whole reads and writes. */
#pragma once
#include "base/auto.h"
#include <stddef.h>
#include <sys/types.h>

struct carrel_error;
struct open_how;

void fd_close(int fd); /* -1 is fine; keeps errno */
DEFINE_AUTO(int, fd_close)

/*
 * openat2(2), again as long as it says EAGAIN: below a directory it does for a path with "..",
 * also in a link, while anything on the machine is renamed or mounted. A negative errno.
 */
int fd_open_how(int dir, const char *path, const struct open_how *how);

/* Hands a descriptor over: *fd becomes -1. */
int fd_steal(int *fd);

/* Writes all of it, or returns a negative errno. Retries on EINTR; blocks as the descriptor
 * does. */
int fd_write_all(int fd, const void *data, size_t len);

/* The same, and without a signal if it is a socket whose other end is closed (-EPIPE). */
int fd_send_all(int fd, const void *data, size_t len);

/*
 * As write(2), but a pipe that nothing reads is only an error (EPIPE): the caller of a library
 * may have left SIGPIPE as it was.
 */
ssize_t fd_write_no_signal(int fd, const void *data, size_t len);

/* Reads until `max` or end of file. Returns the number of bytes or a negative errno. */
ssize_t fd_read_all(int fd, void *data, size_t max);

/*
 * Writes `text` to the existing kernel file `path` below `dir` (AT_FDCWD works) in one write,
 * because that is how /proc and cgroup files take values. Negative errno on failure.
 */
int fd_write_file(int dir, const char *path, const char *text);

/* Reads a small text file into `text`, NUL-terminated. Returns its length or a negative errno.
 */
ssize_t fd_read_file(int dir, const char *path, char *text, size_t size);

/*
 * Writes a file that must not exist yet, in a directory that no other process writes to. No
 * link is followed. Nothing is synced: a sweep or a repair handles the loss of such a file.
 * Negative errno on failure.
 */
int fd_write_new(int dir, const char *name, const void *data, size_t len);
int fd_write_new_text(int dir, const char *name, const char *text);

/* Creates the directories in `names` (NULL at the end) in turn, if they do not exist. */
int fd_make_dirs(int dir, const char *const *names);

struct buf;

/* Adds a whole file to `text`; a missing file adds nothing. -EFBIG: more than fits. */
int fd_add_file(int dir, const char *path, struct buf *text, struct carrel_error *err);

int fd_set_nonblocking(int fd);

/* Raises the soft limit of open files to the hard limit; best effort. */
void fd_raise_limit(void);

/* Closes every descriptor that is not in `keep`; -1 in it is fine. */
void fd_close_all_but(const int *keep, size_t n);

/*
 * Replaces the file `path` whole: temporary file beside it, fsync, rename, fsync the directory.
 * On failure the old file is untouched and nothing is left behind.
 */
int fd_replace_file(
        const char *path, const void *data, size_t len, mode_t mode, struct carrel_error *err);

/* The same for `name` in the directory `dir`; negative errno on failure. */
int fd_replace_at(int dir, const char *name, const void *data, size_t len, mode_t mode);
