/*
 * harvest.h - what a run left in its workspace, as git objects that can be trusted.
 *
 * The run is over and its sandbox has ended. If it did not touch its git dir and no filter
 * applies, carrel reads the upper directory itself. Otherwise git runs in a fresh sandbox and
 * writes a pack, which is checked like any untrusted one. Both ways end in the workspace's
 * quarantine, with two commits: `tip`, the run's branch, or HEAD if that is ahead of it, and
 * `snapshot`, the tip plus uncommitted work. Commits of other branches and of the stash are
 * counted, and stay where they are.
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

/* If git runs, so may programs that the run chose, such as filters. */
struct harvest_bounds {
    uint64_t max_bytes;     /* limit of the new objects */
    uint64_t disk_bytes;    /* limit of the whole workspace meanwhile */
    const uint64_t *limits; /* of the run, one for each enum limit; NULL: no longer known */
    uint64_t timeout_ms;    /* of the run; 0: no longer known */
};

/*
 * Harvests the workspace and writes the result into its meta. The caller holds the lock.
 * -EDQUOT: over one of the first two bounds; nothing was harvested.
 *
 * Only once after each run: if git runs, the run's filters can change the files, and the work
 * that is delivered must be the work that was reviewed.
 */
int harvest_take(struct worktree *worktree, struct runtime *runtime,
        const struct harvest_bounds *bounds, struct harvest *out, struct carrel_error *err);

/* Adds to the error which run could not be harvested. Returns `code`. */
int harvest_wrap(const struct workspace *ws, int code, struct carrel_error *err);

/* What the last harvest left out. The caller finishes *out, also after a failure. */
int harvest_oddities(
        const struct worktree *worktree, struct harvest *out, struct carrel_error *err);

/* Where the objects of a result are until they are in the repository: the quarantine of
 * workspace/harvest/harvest.h. */
int objects_dir_path(
        const struct worktree *worktree, char path[static PATH_MAX], struct carrel_error *err);

/* The changes between two commits; *out is not written if they are the same. */
int objects_dir_sum_up(const struct worktree *worktree, const char *from, const char *to,
        struct harvest_summary *out, struct carrel_error *err);
