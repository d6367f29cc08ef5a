/* stream.h - feeds a descriptor to libarchive, and converts its errors. */
#pragma once
#include <archive.h>
#include <stddef.h>

struct carrel_error;

struct stream {
    int fd;
    char data[1U << 16];
};

/* Begins to read. Filters and formats are set already. */
int stream_open(struct archive *archive, struct stream *stream, struct carrel_error *err);

/* libarchive's last error: -EBADMSG unless a system call failed. */
int stream_error(struct archive *archive, struct carrel_error *err);

void stream_free(struct archive *archive); /* NULL is fine */
