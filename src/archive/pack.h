/* pack.h - writes a tree of files as a tar. */
#pragma once
#include <stdint.h>

struct carrel_error;

struct packed {
    uint64_t entries;
    uint64_t skipped; /* devices, FIFOs, sockets */
};

/*
 * Writes all below the directory `dir` to `out`: names in order, so that the same tree gives
 * the same bytes; several names of one file as hard links. Links are not followed and mounts
 * are not entered: their directory appears empty.
 */
int pack_tree(int dir, int out, struct packed *packed, struct carrel_error *err);
