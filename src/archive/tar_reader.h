/*
 * tar_reader.h - reads tar archives of any origin and packing, one entry at a time.
 *
 * It needs libarchive, which the program links and libcarrel.so does not: tar_apart.h and
 * unpack_apart() ask the program. The writer is our own (files/tar.h), because libarchive's
 * would link all of libarchive.
 */
#pragma once
#include "files/tar.h"

/* The compression of a tar. */
enum tar_packing { TAR_PLAIN, TAR_GZIP, TAR_ZSTD, TAR_XZ, TAR_ANY /* whichever it is */ };

/* "plain", "gzip", "zstd", "xz" from the first bytes of a file; six tell all of them apart. */
enum tar_packing tar_packing_of(const void *head, size_t len);
const char *tar_packing_name(enum tar_packing packing);

struct tar_reader;

/*
 * Reads from `fd`, which the caller keeps; a pipe is fine. TAR_PLAIN or TAR_ANY. `limits` NULL:
 * TAR_LIMITS.
 */
int tar_reader_open(int fd, enum tar_packing packing, const struct tar_limits *limits,
        struct tar_reader **out, struct carrel_error *err);

/*
 * Returns 1 and the next entry, or 0 at the end. Its strings are valid until the next call.
 * Unread data of the previous entry is skipped. -EBADMSG: the archive is corrupt.
 */
int tar_reader_next(struct tar_reader *reader, struct tar_entry *out, struct carrel_error *err);

/* The next bytes of the entry's file; holes are zeroes. 0: its end. */
ssize_t tar_reader_read(
        struct tar_reader *reader, void *data, size_t size, struct carrel_error *err);

/* Copies all of the entry's file into `fd`, an empty seekable file: holes stay holes. */
int tar_reader_copy(struct tar_reader *reader, int fd, struct carrel_error *err);

void tar_reader_free(struct tar_reader *reader); /* NULL is fine */
DEFINE_AUTO(struct tar_reader *, tar_reader_free)
