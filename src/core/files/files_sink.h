/* files_sink.h - the target of a copied tree: a directory of the host, or one in a sandbox. */
#pragma once
#include "core/files/files.h"
#include "files/walk.h"

/* Everything is created below `top`, which the caller keeps. */
struct tree_sink {
    struct sink base;
    struct file_access *access; /* NULL: on the host */
    unsigned depth;
    int dirs[FILES_MAX_DEPTH + 2]; /* dirs[0] is the top */
    bool is_new[FILES_MAX_DEPTH + 2];
};

/* On the host: no link is followed, and only files, directories and links are created. */
void sink_to_host(struct tree_sink *sink, int top);

/* In a sandbox: the sandbox creates everything, with the rights of its user. */
void sink_to_access(struct tree_sink *sink, struct file_access *access, int top);

/* The stream `in` becomes a file of this name, with permissions 644. */
int sink_stream(struct tree_sink *sink, const char *name, int in, struct carrel_error *err);

/* The same for the current file of a tar, with the permissions and times of `st`. */
struct tar_plain;
int sink_tar(struct tree_sink *sink, const char *name, struct tar_plain *tar,
        const struct stat *st, struct carrel_error *err);

/* Excludes this directory, the target, from the copy. */
void sink_avoid(struct tree_sink *sink, int fd);

/* Closes directories that a failure left open. */
void sink_finish(struct tree_sink *sink);
