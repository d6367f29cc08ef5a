/*
 * files_far.h - files of a sandbox that has no descriptors of them (file_access_far()).
 *
 * Trees come and go as a tar. The sandbox's side writes and reads it; this side counts, keeps
 * the limits, and believes nothing of it.
 */
#pragma once
#include "core/files/files.h"

struct tar_apart;
struct tree_sink;

/* As the functions without `far`. */
int far_read_whole(struct file_access *access, const char *path, int out,
        const struct files_limits *limits, struct carrel_error *err);
int far_export(struct file_access *access, const char *path, int out,
        const struct files_limits *limits, struct files_count *count, struct carrel_error *err);
/* The limits are those of the reader. */
int far_import(struct file_access *access, const char *path, struct tar_apart *tar,
        struct files_count *count, struct carrel_error *err);

/* How files of the sandbox are copied: to `name` in the sink; "": the content of a directory.
 */
struct far_copy {
    struct file_access *access;
    const char *path;
    bool is_directory;
    bool keeps_links_in;
    const struct files_limits *limits;
    struct files_count *count;
};
int far_copy_out(const struct far_copy *copy, struct tree_sink *sink, const char *name,
        struct carrel_error *err);

/* The open file or directory `fd` to `name` in the directory `path` of the sandbox. */
int far_copy_in(
        const struct far_copy *copy, int fd, const char *name, struct carrel_error *err);

/* The stream `in` becomes the file `name` there, when it is complete. */
int far_copy_stream(
        const struct far_copy *copy, int in, const char *name, struct carrel_error *err);
