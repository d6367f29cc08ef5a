/*
 * files_walk.h - all that is in a directory, handed to a sink one by one.
 *
 * The directory is a descriptor; who can change what is below it may do so meanwhile. One name
 * is opened at a time, no link is followed, and types are asked of what was opened.
 */
#pragma once
#include "core/files/files.h"
#include "core/files/files_data.h"
#include <limits.h>
#include <sys/stat.h>

struct sink;

/* Names are single components. `st` is of the host: its ids mean nothing in a sandbox. */
struct sink_ops {
    int (*enter)(struct sink *sink, const char *name, const struct stat *st,
            struct carrel_error *err);
    int (*leave)(struct sink *sink, const struct stat *st, struct carrel_error *err);
    /* `fd` is at its beginning. */
    int (*file)(struct sink *sink, const char *name, int fd, const struct stat *st,
            struct carrel_error *err);
    int (*link)(struct sink *sink, const char *name, const char *target, const struct stat *st,
            struct carrel_error *err);
};

/* Embedded in the struct of whoever takes the things. */
struct sink {
    const struct sink_ops *ops;
    struct data_budget data; /* what the files' bytes may cost */
    dev_t own_device;        /* where it all goes: a copy into itself must end */
    ino_t own_inode;
};

struct walk {
    struct sink *sink;
    struct files_count *count;
    uint64_t max_entries;
    bool keeps_links_in; /* links that lead out of the tree are left out */
    bool has_failed;     /* and the message says where */
    unsigned depth;      /* in directories of the sink */
    unsigned top;        /* that of what is in the first directory */
    size_t len;
    char at[PATH_MAX]; /* for messages: where we are; cut when it does not fit */
};

/* Limits as the caller gave them; NULL: none were. */
struct walk walk_begin(
        struct sink *sink, struct files_count *count, const struct files_limits *limits);

/* What is in the directory `fd`, not itself. */
int walk_contents(struct walk *walk, int fd, struct carrel_error *err);

/* One open file or directory under the name `name`; a directory with its contents. */
int walk_one(struct walk *walk, const char *name, int fd, struct carrel_error *err);

/* A link at this depth whose text, taken from there, cannot lead above the top. */
bool walk_is_link_inside(const char *target, unsigned depth);

/* A directory of files that the kernel makes up while they are read: nobody's to copy. */
bool walk_is_made_up(int fd);
