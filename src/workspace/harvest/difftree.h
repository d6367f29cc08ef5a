/* difftree.h - the difference of two commits, path by path, from git diff-tree. */
#pragma once
#include "git/git.h"
#include <stdbool.h>
#include <stdint.h>

struct carrel_error;

struct difftree_entry {
    unsigned old_mode, new_mode; /* 0: not there */
    char status;                 /* A M D T */
    const char *path;
};
struct difftree_lines {
    bool is_binary;
    uint64_t added, removed;
    const char *path;
};

/*
 * Calls `each` for every path that differs, in git's order; then, if `lines` is not NULL,
 * `lines` for every one of them in the same order. A negative result (with err set) stops it.
 * Renames are not detected. -EBADMSG for a path of more than 64 KiB.
 */
struct difftree {
    const char *from, *to; /* object ids */
    int (*each)(void *context, const struct difftree_entry *entry, struct carrel_error *err);
    int (*lines)(void *context, const struct difftree_lines *lines, struct carrel_error *err);
    void *context;
    unsigned timeout_ms;
    uint64_t max_memory_bytes; /* of git; above 1 GiB, and 0: 1 GiB */
};
int difftree_run(
        const struct git *git, const struct difftree *difftree, struct carrel_error *err);
