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
 * That hold is not exact. The kernel counts processor time by its tick, on each processor
 * apart; and since Linux 6.18 a call that has begun is let finish, a write of many megabytes as
 * well, unless it is killed. There we must look in time, too: who may (root) has the processor
 * before everybody else for that, unless the programs make us count all the time. And
 * a run is over its limit before it, by as much as may be written until it is dead: the more
 * processors there are, the more that is. So programs with a small limit have few of them, and
 * a limit that would be all margin is refused.
 *
 * The walk does not find files that have no name any more. So the processes are asked what they
 * hold (nameless.h). Where that is in doubt, again and again, and the file system has lost what
 * the run may use, the doubt counts against the run.
 */
#pragma once
#include "base/turns.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct carrel_error;
struct sandbox;
struct sandbox_spec;

#define DISK_WATCH_DIRS 3

struct disk_watch {
    int dirs[DISK_WATCH_DIRS]; /* not owned; all on one file system */
    size_t n_dirs;             /* 0: nothing to watch */
    bool has_others;           /* programs may be of subordinate ids, whom we cannot look at */
    bool has_private; /* the program's own places, /tmp and the like, are below one of them */
    struct sandbox *box; /* not owned; NULL: there is none yet */
    uint64_t max_bytes;
    uint64_t max_inodes;
    uint64_t margin_bytes; /* how far from the limit a run is ended */
    unsigned processors;   /* on which the programs may be writing at the same time */
    struct disk_mark {
        uint64_t used_bytes;
        uint64_t used_inodes;
        uint64_t free_bytes; /* of the file system then, and more if somebody made room since */
        uint64_t free_inodes;
    } mark;              /* when all was last counted without a doubt */
    uint64_t cpu_milli;  /* limit of processor time that is given out in portions; 0: is not */
    uint64_t portion_us; /* the last one */
    uint64_t portion_ns; /* when it may be used up, and the next one is due */
    unsigned doubts;     /* counts in doubt since then, one after the other ... */
    uint64_t doubt_ns;   /* ... the first of them here */
    uint64_t next_ns;    /* when to look again */
    bool is_first;       /* the thread has its turn before everybody else ... */
    struct turns before; /* ... and had these */
    uint64_t seen_free;  /* at the last look */
    uint64_t last_count_ns; /* what the last count took */
    uint64_t count_ns;      /* what counts have taken of late ... */
    uint64_t counted_ns;    /* ... seen from here */
    bool counts_much;       /* so much that the margin became wider */
};
#define DISK_WATCH_INIT                                                                        \
    {                                                                                          \
        .next_ns = UINT64_MAX                                                                  \
    }

/* Refuses what was demanded, or is required as a protection, and is too small to be kept. */
int disk_watch_check(const struct sandbox_spec *spec, struct carrel_error *err);

/* Whether programs may be of ids that we cannot look at; then no count is whole. */
bool disk_watch_has_others(const struct sandbox_spec *spec);

/*
 * Whether the limit will be kept in `box`: it is large enough, processor time can be given out,
 * and calls that have begun are interrupted or we may come first.
 */
bool disk_watch_can_hold(const struct sandbox_spec *spec, const struct sandbox *box);

/* Where it will not: refuses what was demanded, or is required. */
int disk_watch_refuse(const struct sandbox_spec *spec, struct carrel_error *err);

/* On how many processors the programs may run for a limit to be kept; 0: on all. */
unsigned disk_watch_processors(uint64_t max_bytes);

/*
 * Watches what is below `dir`, together with what is watched already. Whoever makes the sandbox
 * that uses it sets `box`.
 */
int disk_watch_begin(
        struct disk_watch *watch, int dir, uint64_t max_bytes, struct carrel_error *err);

/*
 * Between these two the thread only waits, until `next_ns` at the latest, and looks: then it
 * may come before everybody else. Whatever others can make it work at comes behind them.
 */
void disk_watch_wait(struct disk_watch *watch);
void disk_watch_waited(struct disk_watch *watch);

/*
 * To be called when `next_ns` has come. True: the limit is reached, and what was found running
 * is killed; or the limit cannot be watched. Either way the caller ends the rest.
 */
bool disk_watch_is_over(struct disk_watch *watch);

/* The same, at once and by a count, whatever the file system says. */
bool disk_watch_is_full(struct disk_watch *watch);

/* Programs begin to run now, in the sandbox that `box` is. */
void disk_watch_start(struct disk_watch *watch);

/* Until the next look the limit of processor time is what it was: nothing runs. */
void disk_watch_rest(struct disk_watch *watch);

/*
 * Something is asked of the sandbox itself, which must not wait behind those who have used up
 * the last portion: everybody gets all that the limit allows until the next look.
 */
void disk_watch_ease(struct disk_watch *watch);

/* What was asked is done, or something was started: after a rest the next look is due. */
void disk_watch_go_on(struct disk_watch *watch);

/* The watch is over: so it stays. */
void disk_watch_release(struct disk_watch *watch);
