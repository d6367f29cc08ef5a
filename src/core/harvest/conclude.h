/* conclude.h - the workspace of a run that is over is read, and the wanted action is done. */
#pragma once
#include <carrel/run.h>
#include <stdbool.h>
#include <stdint.h>

struct carrel_error;
struct outcome;
struct runtime;
struct worktree;

/* Those of the run. They hold for what its result makes necessary, too. */
struct conclude_bounds {
    const uint64_t *limits; /* one for each enum limit */
    uint64_t timeout_ms;
    bool may_commit; /* the policy allows commits in the user's repository */
};

/*
 * The sandbox is gone: takes the picture, sums it up, and does `action`. A commit of ours names
 * `seal`, the head of the run's journal (empty: none). The workspace and its objects stay
 * within the disk limit. On failure the workspace is there and whole.
 */
int conclude(struct worktree *worktree, struct runtime *runtime,
        enum carrel_outcome_action action, const char *seal,
        const struct conclude_bounds *bounds, struct outcome **out, struct carrel_error *err);
