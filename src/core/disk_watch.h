/*
 * disk_watch.h - --disk for directories that lie on the host's own file system.
 *
 * No quota that works everywhere and rootless exists, so we look. Asking a file system how much
 * is free costs a microsecond; walking the directories costs what they hold. So the walk is
 * done only when the file system as a whole lost as much as the run may still use: until then
 * the run cannot be over its limit, whoever else writes there.
 *
 * We may be late: the machine is busy, the walk is long. So, where a cgroup holds the processor
 * time of the run, it is given out in portions, each as much as the programs need to write half
 * of what is left, and the next one when we have looked; the kernel sees to that. Elsewhere the
 * programs are halted during the walk, and who is faster than our looks gets past the limit.
 *
 * A run is over its limit a little before it: as much as it can write until it is dead.
 *
 * The walk does not find files that have no name any more. So the processes are asked what they
 * hold (nameless.h). Where that is in doubt, again and again, and the file system has lost what
 * the run may use, the doubt counts against the run.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct carrel_error;
struct sandbox;

#define DISK_WATCH_DIRS 3

struct disk_watch {
    int dirs[DISK_WATCH_DIRS]; /* not owned; all on one file system */
    size_t n_dirs;             /* 0: nothing to watch */
    bool has_private; /* the program's own places, /tmp and the like, are below one of them */
    struct sandbox *box; /* not owned; NULL: there is none yet */
    uint64_t max_bytes;
    uint64_t max_inodes;
    struct disk_mark {
        uint64_t used_bytes;
        uint64_t used_inodes;
        uint64_t free_bytes; /* of the file system then, and more if somebody made room since */
        uint64_t free_inodes;
    } mark;              /* when all was last counted without a doubt */
    uint64_t cpu_milli;  /* limit of processor time that is given out in portions; 0: is not */
    uint64_t portion_us; /* the last one */
    unsigned doubts;     /* counts in doubt since then, one after the other */
    uint64_t next_ns;    /* when to look again */
};
#define DISK_WATCH_INIT                                                                        \
    {                                                                                          \
        .next_ns = UINT64_MAX                                                                  \
    }

/*
 * Watches what is below `dir`, together with what is watched already. Whoever makes the sandbox
 * that uses it sets `box`.
 */
int disk_watch_begin(
        struct disk_watch *watch, int dir, uint64_t max_bytes, struct carrel_error *err);

/*
 * To be called when `next_ns` has come. True: the limit is reached, and what was found running
 * is killed; or the limit cannot be watched. Either way the caller ends the rest.
 */
bool disk_watch_is_over(struct disk_watch *watch);

/* Programs begin to run now, in the sandbox that `box` is. */
void disk_watch_start(struct disk_watch *watch);

/* The watch is over, or has nothing to do: the limit of processor time is what it was. */
void disk_watch_release(struct disk_watch *watch);
