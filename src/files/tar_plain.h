/*
 * tar_plain.h - reads a tar that files/tar.h has written at the other end of a stream.
 *
 * The other end may be in a sandbox: what comes is checked as that of any attacker, and what
 * our writer would not have written is refused (-EBADMSG). That leaves little to parse: one
 * header form, and the pax records path, linkpath, size, mtime.
 */
#pragma once
#include "files/tar.h"
#include <stddef.h>

/* Filled in by tar_plain_init(); the caller keeps `fd`. */
struct tar_plain {
    int fd;
    uint64_t left; /* of the current file */
    size_t pad;    /* after it */
    unsigned max_depth;
    char path[TAR_PATH_MAX + 1];
    char target[TAR_PATH_MAX + 1];
};

void tar_plain_init(struct tar_plain *tar, int fd, unsigned max_depth);

/*
 * Returns 1 and the next entry, or 0 at the end of the archive. Its strings are valid until the
 * next call. Unread data of the previous entry is skipped. There is no limit but the depth: the
 * caller counts entries and bytes.
 */
int tar_plain_next(struct tar_plain *tar, struct tar_entry *out, struct carrel_error *err);

/* The next bytes of the entry's file. 0: its end. */
ssize_t tar_plain_read(
        struct tar_plain *tar, void *data, size_t size, struct carrel_error *err);
