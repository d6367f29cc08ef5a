/*
 * file_unpack.h - unpacks a tar below a directory of a sandbox.
 *
 * The entries come from any reader, the files are made by any answerer of requests: on the
 * host for a sandbox whose directory is a descriptor here, or in the sandbox itself.
 */
#pragma once
#include "files/tar.h"
#include <stdbool.h>

struct carrel_error;
struct file_answer;
struct file_request;
struct file_unpack;
struct files_count;

struct file_unpack_ops {
    /* As sandbox_file(). */
    int (*ask)(struct file_unpack *unpack, const struct file_request *request,
            struct file_answer *answer, struct carrel_error *err);
    /* As tar_plain_next() and tar_plain_read(). */
    int (*next)(struct file_unpack *unpack, struct tar_entry *out, struct carrel_error *err);
    ssize_t (*read)(
            struct file_unpack *unpack, void *data, size_t size, struct carrel_error *err);
};

/* Embedded in the caller's struct. */
struct file_unpack {
    const struct file_unpack_ops *ops;
    int top;         /* the directory: `dir` of every request */
    bool keeps_dirs; /* directories that exist keep their permissions and times */
    struct files_count *count;
};

/*
 * Unpacks all. Existing files and links are replaced, never followed; devices, FIFOs and
 * sockets are skipped and counted; owners and set-uid bits are not set. A file gets its name
 * when it is complete. A failure does not undo what was done before.
 */
int file_unpack(struct file_unpack *how, struct carrel_error *err);

/* A random name for an incomplete file. */
void file_temporary_name(char name[static 32]);
