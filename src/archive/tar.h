/*
 * tar.h - tar archives, read and written one entry at a time.
 *
 * Whoever made an archive chose its names, its sizes and its order. So what comes out of a
 * reader was checked: every entry is one of few kinds and has a name that can be used below a
 * directory. What a reader cannot know is what lies at that name already: open the way to it
 * with RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS, as archive/unpack.c does.
 *
 * Reading needs libarchive: the program has it, libcarrel.so has not. Writing is our own; all
 * that libarchive has would come with its writer.
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
    TAR_OTHER, /* a device, a FIFO, a socket, or what nobody knows: not for us */
};

struct tar_entry {
    enum tar_kind kind;
    const char *path;   /* relative, no "." or ".." or empty part: "a/b"; "." is the top */
    const char *target; /* symlink: any text but the empty one; hard link: as `path` */
    uint64_t bytes;     /* of a file, holes included */
    mode_t mode;        /* permissions and the sticky bit: never set-uid, set-gid or a type */
    struct timespec mtime;
};

/* What an archive may cost; zero means the value in TAR_LIMITS. Beyond it: -EFBIG. */
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

/* How the bytes around the tar may be packed. */
enum tar_packing { TAR_PLAIN, TAR_GZIP, TAR_ZSTD, TAR_XZ, TAR_ANY /* whichever it is */ };

/* "plain", "gzip", "zstd", "xz" from the first bytes of a file; six tell all of them apart. */
enum tar_packing tar_packing_of(const void *head, size_t len);
const char *tar_packing_name(enum tar_packing packing);

/*
 * Normalises a name from an archive into `out`: "./a//b/" -> "a/b", "./" -> ".". Refuses an
 * absolute one, "..", one that is empty, too long or too deep. Pure. -EINVAL, -ENAMETOOLONG.
 */
int tar_clean_path(const char *path, unsigned max_depth, char out[static TAR_PATH_MAX + 1],
        struct carrel_error *err);

struct tar_reader;

/*
 * Reads from `fd`, which stays the caller's; a pipe is fine. TAR_PLAIN or TAR_ANY. `limits`
 * NULL: TAR_LIMITS.
 */
int tar_reader_open(int fd, enum tar_packing packing, const struct tar_limits *limits,
        struct tar_reader **out, struct carrel_error *err);

/*
 * 1 and the next entry, 0 at the end. Its strings are good until the next call. What was not
 * read of the entry before is skipped. -EBADMSG: the archive is broken.
 */
int tar_reader_next(struct tar_reader *reader, struct tar_entry *out, struct carrel_error *err);

/* The next bytes of the entry's file; holes are zeroes. 0: its end. */
ssize_t tar_reader_read(
        struct tar_reader *reader, void *data, size_t size, struct carrel_error *err);

/* All of the entry's file into `fd`, an empty file that can be seeked: holes stay holes. */
int tar_reader_copy(struct tar_reader *reader, int fd, struct carrel_error *err);

void tar_reader_free(struct tar_reader *reader); /* NULL is fine */
DEFINE_AUTO(struct tar_reader *, tar_reader_free)

struct tar_writer;

/* Writes a plain tar to `fd`, which stays the caller's; a pipe is fine. */
int tar_writer_open(int fd, struct tar_writer **out, struct carrel_error *err);

/* Begins an entry; a TAR_FILE is followed by exactly `bytes` bytes of data, or the next call
 * fails with -EIO. Owners are 0:0 without names: they mean nothing elsewhere. */
int tar_writer_add(
        struct tar_writer *writer, const struct tar_entry *entry, struct carrel_error *err);
int tar_writer_data(
        struct tar_writer *writer, const void *data, size_t len, struct carrel_error *err);

/* The end of the archive. Without it what was written is no whole archive. */
int tar_writer_finish(struct tar_writer *writer, struct carrel_error *err);

void tar_writer_free(struct tar_writer *writer); /* NULL is fine */
DEFINE_AUTO(struct tar_writer *, tar_writer_free)
