/*
 * disk_watch.h - --disk for directories that lie on the host's own file system.
 *
 * No quota that works everywhere and rootless exists, so we look. Asking a file system how much
 * is free costs a microsecond; walking the directories costs what they hold. So the walk is
 * done only when the file system as a whole lost as much as the run may still use: until then
 * the run cannot be over its limit, whoever else writes there.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct carrel_error;

struct disk_watch {
    int dir; /* not owned; -1: nothing to watch */
    uint64_t max_bytes;
    uint64_t max_inodes;
    uint64_t used_bytes; /* at the last walk */
    uint64_t used_inodes;
    uint64_t free_bytes; /* of the file system then */
    uint64_t free_inodes;
    uint64_t next_ns; /* when to look again */
};
#define DISK_WATCH_INIT                                                                        \
    {                                                                                          \
        .dir = -1, .next_ns = UINT64_MAX                                                       \
    }

/* Watches what is below `dir`. */
int disk_watch_begin(
        struct disk_watch *watch, int dir, uint64_t max_bytes, struct carrel_error *err);

/* To be called when `next_ns` has come. True: the limit is reached. */
bool disk_watch_is_over(struct disk_watch *watch);
