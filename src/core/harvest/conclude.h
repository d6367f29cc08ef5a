/* conclude.h - the end of a run: harvests its workspace and does the requested action. */
#pragma once
#include <carrel/run.h>
#include <stdbool.h>
#include <stdint.h>

struct carrel_error;
struct outcome;
struct runtime;
struct worktree;

/* The limits of the run; they also apply to what its harvest starts. */
struct conclude_bounds {
    const uint64_t *limits; /* one for each enum limit */
    uint64_t timeout_ms;
    bool may_commit; /* the policy allows commits in the user's repository */
};

/*
 * After the sandbox has ended: harvests the workspace, sums it up, and does `action`. A commit
 * by carrel names `seal`, the head of the run's journal (empty: none). The workspace and its
 * objects stay within the disk limit. After a failure the workspace is complete.
 */
int conclude(struct worktree *worktree, struct runtime *runtime,
        enum carrel_outcome_action action, const char *seal,
        const struct conclude_bounds *bounds, struct outcome **out, struct carrel_error *err);

/* The same for a workspace whose files cannot be reached now: it is kept as it is. */
int conclude_unread(const struct worktree *worktree, const struct carrel_error *why,
        struct outcome **out, struct carrel_error *err);
