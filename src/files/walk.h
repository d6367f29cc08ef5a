/*
 * walk.h - passes the content of a directory to a sink, entry by entry.
 *
 * The directory is a descriptor; its content may change meanwhile. One name is opened at a
 * time, no link is followed, and types are checked on the descriptor.
 */
#pragma once
#include "files/data.h"
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

/* Limits of a tree; 0 means the value here. Beyond it: -EFBIG. */
struct files_limits {
    uint64_t entries; /* 1 Mi */
    uint64_t bytes;   /* 256 GiB of data; holes count only if they are written */
};
#define FILES_MAX_ENTRIES (UINT64_C(1) << 20)
#define FILES_MAX_BYTES (UINT64_C(1) << 38)
#define FILES_MAX_DEPTH 200 /* each costs descriptors */

struct files_count {
    uint64_t files, directories, links, bytes;
    uint64_t skipped; /* neither file, directory nor link; and virtual files of the kernel */
    uint64_t stray_links; /* would leave the tree: skipped if the target is the host */
};

struct sink;

/* Names are single components. `st` is of the host: its ids have no meaning in a sandbox. */
struct sink_ops {
    int (*enter)(struct sink *sink, const char *name, const struct stat *st,
            struct carrel_error *err);
    int (*leave)(struct sink *sink, const struct stat *st, struct carrel_error *err);
    /* `fd` is at its beginning. */
    int (*file)(struct sink *sink, const char *name, int fd, const struct stat *st,
            struct carrel_error *err);
    int (*link)(struct sink *sink, const char *name, const char *target, const struct stat *st,
            struct carrel_error *err);
    /* What is skipped. NULL: nothing to do. */
    int (*other)(struct sink *sink, const char *name, struct carrel_error *err);
};

/* Embedded in the receiver's struct. */
struct sink {
    const struct sink_ops *ops;
    struct data_budget data; /* limit of the files' bytes */
    dev_t own_device;        /* the target: a copy into itself must end */
    ino_t own_inode;
};

struct walk {
    struct sink *sink;
    struct files_count *count;
    uint64_t max_entries;
    bool keeps_links_in; /* links that leave the tree are skipped */
    bool has_failed;     /* and the message says where */
    unsigned depth;      /* in directories of the sink */
    unsigned top;        /* the depth of the first directory's content */
    size_t len;
    char at[PATH_MAX]; /* for messages: the current path; truncated if it does not fit */
};

/* Limits as the caller gave them; NULL: none were. */
struct walk walk_begin(
        struct sink *sink, struct files_count *count, const struct files_limits *limits);

/* The content of the directory `fd`, without itself. */
int walk_contents(struct walk *walk, int fd, struct carrel_error *err);

/* One open file or directory under the name `name`; a directory with its contents. */
int walk_one(struct walk *walk, const char *name, int fd, struct carrel_error *err);

/* Whether a link at this depth, by its text, cannot lead above the top. */
bool walk_is_link_inside(const char *target, unsigned depth);

/* A directory of virtual files, which the kernel generates on read: not copied. */
bool walk_is_made_up(int fd);
