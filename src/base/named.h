/*
 * named.h - opens what the caller named, once.
 *
 * A program that ran earlier, or runs now, may have written the directory in which the name is
 * looked up: it can put a link, a FIFO or another file there, and exchange them between any two
 * calls. So the name is used once, a link is not followed, and every later question is asked of
 * the descriptor. There is no fallback: without openat2 the name is refused.
 *
 *   relative path   below the current directory; no component is a link
 *   absolute path   a link of the system's is passed (/bin -> usr/bin, /home -> /usr/home), and
 *                   so is what it leads to by the same rule: the link, its directory and all
 *                   directories above it belong to root, and only root can write there. For
 *                   root, whose runs leave files that belong to root, the link is directly in
 *                   /, /etc, /run, /usr or /var. The last component is not a link
 *   /dev/fd/N, /proc/self/fd/N, /dev/stdin, /dev/stdout, /dev/stderr
 *                   a descriptor that the caller passed on: a duplicate of it
 *
 * Slashes and "/." at the end do not count: "link/" is a link.
 */
#pragma once
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct carrel_error;
struct stat;

enum named_kind {
    NAMED_FILE, /* a regular file, open for reading; of a descriptor: all but a directory */
    NAMED_DIRECTORY, /* O_PATH */
    NAMED_ANY,       /* O_PATH, whatever it is; not a link */
};

/*
 * Returns the descriptor. It never waits for the writer of a FIFO and opens no device. -ELOOP:
 * the path is or passes a link; -EINVAL, -EISDIR, -ENOTDIR: it is of another kind.
 */
int named_open(const char *path, enum named_kind kind, struct carrel_error *err);

/* The same below the directory `dir`, which the path does not leave (-EXDEV). */
int named_open_beneath(
        int dir, const char *path, enum named_kind kind, struct carrel_error *err);

/*
 * The file of an O_PATH descriptor, opened with `flags`: no name is looked up again. Negative
 * errno without a message.
 */
int named_reopen(int fd, int flags);

/* The directory in which `path` is or can be made (O_PATH), by the same rules for the way
 * there; `name` gets the last component. -EINVAL: that is "." or "..". */
int named_open_parent(
        const char *path, char name[static NAME_MAX + 1], struct carrel_error *err);

/*
 * Writes the file `path` whole: temporary file in its directory, which is opened once, then a
 * rename. A link, a FIFO or a directory at that name is refused; a character device and a
 * descriptor are written to.
 */
int named_replace(
        const char *path, const void *data, size_t len, mode_t mode, struct carrel_error *err);

/* What named_replace() would refuse for its name, found before there is something to write. */
int named_may_replace(const char *path, struct carrel_error *err);

/*
 * The kernel's path of an open file: absolute and without links, when it was asked for. It is
 * for comparisons and messages; what is used is the descriptor. -ENOENT: removed, or not
 * reachable from the root directory.
 */
int named_path(int fd, char *path, size_t size);

/* Which file it is, for a caller that has to look it up by name once more. */
struct named_id {
    dev_t dev;
    ino_t ino;
};
struct named_id named_id_of(const struct stat *st);
bool named_id_is(const struct named_id *id, const struct stat *st);

/* Whether the directory `dir` is the directory `id` or below it, whatever their names are. */
bool named_is_below(int dir, const struct named_id *id);
