/*
 * harvest.h - what a run left in its workspace, as git objects that can be trusted.
 *
 * The run is over and its sandbox gone. If it did not touch its git dir and no filter is in
 * play, the upper directory says it all and nothing but our own code reads it. Otherwise git
 * must speak, and does so in a fresh sandbox; what comes out is a pack, checked like any
 * stranger's. Both ways end in the workspace's quarantine, with two commits: `tip`, where the
 * run's branch is, or HEAD if that went on from there, and `snapshot`, that plus what was not
 * committed. What other branches and the stash have is counted, and stays where it is.
 */
#pragma once
#include "base/auto.h"
#include "workspace/harvest/harvest.h"
#include "workspace/harvest/upper.h"
#include <limits.h>

struct carrel_error;
struct runtime;
struct worktree;
struct workspace;

struct harvest {
    struct oddity *oddities; /* what is in the tree and not in the snapshot */
    size_t n_oddities;
    bool is_changed; /* something differs from base */
};
void harvest_finish(struct harvest *harvest);

/* Where git must speak, programs of the run's choice may: filters, for one. */
struct harvest_bounds {
    uint64_t max_bytes;     /* what is new may take so much once more, as objects */
    uint64_t disk_bytes;    /* what may lie in the workspace meanwhile */
    const uint64_t *limits; /* of the run, one for each enum limit; NULL: not known any more */
    uint64_t timeout_ms;    /* of the run; 0: likewise */
};

/*
 * Takes the picture and writes it into the workspace's meta. The caller holds the lock.
 * -EDQUOT: over one of the first two bounds; nothing was taken.
 *
 * Once after each run: where git speaks inside, filters of the run's choice can change the very
 * files. The work that is delivered must be the work that was reviewed.
 */
int harvest_take(struct worktree *worktree, struct runtime *runtime,
        const struct harvest_bounds *bounds, struct harvest *out, struct carrel_error *err);

/* Says of which run the picture was that could not be taken. Returns `code`. */
int harvest_wrap(const struct workspace *ws, int code, struct carrel_error *err);

/* What was beside the last picture. The caller finishes *out, also after a failure. */
int harvest_oddities(
        const struct worktree *worktree, struct harvest *out, struct carrel_error *err);

/* Where the objects of a result are until they are in the repository: the quarantine of
 * workspace/harvest/harvest.h. */
int objects_dir_path(
        const struct worktree *worktree, char path[static PATH_MAX], struct carrel_error *err);

/* What is between two commits; nothing is written to *out when they are one. */
int objects_dir_sum_up(const struct worktree *worktree, const char *from, const char *to,
        struct harvest_summary *out, struct carrel_error *err);
