/*
 * tar.h - plain tar archives: what is in them, checked names, and the writer.
 *
 * An attacker may have chosen names, sizes and order of the entries. So a reader checks what it
 * returns: every entry is of a known kind and has a name that can be used below a directory. A
 * reader cannot know what exists at that name: open the path to it with RESOLVE_BENEATH |
 * RESOLVE_NO_SYMLINKS.
 *
 * There are two readers: archive/tar_reader.h for archives of anyone, which only a confined
 * process runs, and tar_plain.h for what this writer has written.
 */
#pragma once
#include "base/auto.h"
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

struct carrel_error;

enum tar_kind {
    TAR_FILE,
    TAR_DIRECTORY,
    TAR_SYMLINK,
    TAR_HARDLINK,
    TAR_OTHER,  /* a device, a FIFO, a socket, or an unknown kind: skipped */
    TAR_FAILED, /* only between our own ends: the tree could not be read to its end */
};

struct tar_entry {
    enum tar_kind kind;
    const char *path;   /* relative, no "." or ".." or empty part: "a/b"; "." is the top */
    const char *target; /* symlink: any text but the empty one; hard link: as `path`;
                           TAR_FAILED: the reason, from the far side */
    uint64_t bytes;     /* of a file, holes included */
    mode_t mode;        /* permissions and the sticky bit: never set-uid, set-gid or a type;
                           TAR_FAILED: the errno */
    struct timespec mtime;
};

/* Limits of an archive; zero means the value in TAR_LIMITS. Beyond them: -EFBIG. */
struct tar_limits {
    uint64_t entries;
    uint64_t bytes; /* of all files together, holes included */
    unsigned depth; /* parts of a path */
};
#define TAR_LIMITS                                                                             \
    (struct tar_limits)                                                                        \
    {                                                                                          \
        .entries = 4U << 20, .bytes = 1ULL << 38, .depth = 256                                 \
    }
#define TAR_PATH_MAX 4095

/*
 * Normalises a name from an archive into `out`: "./a//b/" -> "a/b", "./" -> ".". Refuses an
 * absolute one, "..", one that is empty, too long or too deep. Pure. -EINVAL, -ENAMETOOLONG.
 */
int tar_clean_path(const char *path, unsigned max_depth, char out[static TAR_PATH_MAX + 1],
        struct carrel_error *err);

struct tar_writer;

/* Writes a plain tar to `fd`, which the caller keeps; a pipe is fine. */
int tar_writer_open(int fd, struct tar_writer **out, struct carrel_error *err);

/*
 * Starts an entry; a TAR_FILE is followed by exactly `bytes` bytes of data, or the next call
 * fails with -EIO. Owners are 0:0 without names, because they are meaningless elsewhere.
 */
int tar_writer_add(
        struct tar_writer *writer, const struct tar_entry *entry, struct carrel_error *err);
int tar_writer_data(
        struct tar_writer *writer, const void *data, size_t len, struct carrel_error *err);

/*
 * Instead of the end: the rest of the current file as zeroes, and an entry with the reason. Not
 * after a failure of the writer itself.
 */
int tar_writer_fail(
        struct tar_writer *writer, int code, const char *reason, struct carrel_error *err);

/* Writes the end of the archive, without which it is incomplete. */
int tar_writer_finish(struct tar_writer *writer, struct carrel_error *err);

void tar_writer_free(struct tar_writer *writer); /* NULL is fine */
DEFINE_AUTO(struct tar_writer *, tar_writer_free)
