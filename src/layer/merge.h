/* merge.h - trees of layers into one; for this folder alone. */
#pragma once
#include <stddef.h>

struct carrel_error;

#define MERGE_MAX 128

enum merge_how {
    MERGE_LINK, /* files are hard links to those of the layers, which never change */
    MERGE_VIEW, /* the same, and directories that cannot be read stay so */
    MERGE_COPY, /* of one tree, which no process changes meanwhile */
};

/*
 * Fills the empty directory `to` with what the first `n` of the trees `from`, topmost first,
 * show together, so that it can replace them above the other `below` ones. `aside` is a
 * directory on the same file system for temporary names. The descriptors in `from` are used up.
 */
int merge_trees(int *from, size_t n, size_t below, int to, int aside, enum merge_how how,
        struct carrel_error *err);
