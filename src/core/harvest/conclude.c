/* conclude.c - the end of a run with a workspace. */
#include "core/harvest/conclude.h"
#include "base/err.h"
#include "base/str.h"
#include "core/harvest/deliver.h"
#include "core/harvest/harvest.h"
#include "core/result/outcome.h"
#include "core/worktree/worktree.h"
#include "workspace/renew.h"
#include <errno.h>
#include <stdio.h>

static int sum_up(struct worktree *worktree, struct outcome *outcome, struct carrel_error *err)
{
    const struct workspace *ws = worktree->ws;

    (void)snprintf(outcome->tip, sizeof(outcome->tip), "%s", ws->tip);
    (void)snprintf(outcome->snapshot, sizeof(outcome->snapshot), "%s", ws->snapshot);
    outcome->n_other_commits = ws->n_other_commits;
    int r = objects_dir_sum_up(worktree, ws->base, ws->snapshot, &outcome->summary, err);
    if (r == 0 && strcmp(ws->snapshot, ws->tip) != 0 && outcome->summary.n_commits > 0)
        outcome->summary.n_commits--; /* the one that carrel made of uncommitted work */
    return r;
}

/* Puts the run's commits on its branch. If that fails, the workspace still has them, and the
 * outcome says why. */
static void show_commits(struct worktree *worktree, struct outcome *outcome)
{
    struct carrel_error why = { 0 };

    if (deliver_branch(worktree, &why) < 0)
        outcome->no_branch = why;
    outcome->has_branch = worktree->ws->branch_at[0];
}

static int act(struct worktree *worktree, enum carrel_outcome_action action, const char *seal,
        struct outcome *outcome, struct carrel_error *err)
{
    char commit[OID_MAX];
    bool is_changed = strcmp(worktree->ws->snapshot, worktree->ws->base) != 0;
    int r = 0;

    outcome->state = "kept";
    switch (action) {
    case CARREL_ACTION_DEFAULT:
    case CARREL_KEEP:
        if (worktree->ws->is_published)
            outcome->state = "committed";
        return 0;
    case CARREL_DISCARD:
        r = worktree_discard(worktree, err);
        outcome->state = "discarded";
        return r;
    case CARREL_COMMIT:
        r = is_changed ? deliver_commit(worktree, NULL, seal, commit, err) : 0;
        if (r < 0 || !is_changed)
            return r;
        outcome->state = "committed";
        (void)snprintf(outcome->snapshot, sizeof(outcome->snapshot), "%s", commit);
        return 0;
    case CARREL_APPLY:
        r = is_changed ? deliver_apply(worktree, APPLY_FILES, seal, &outcome->applied, err) : 0;
        if (r == 0 && is_changed)
            outcome->state = outcome->applied.n_conflicts ? "conflict" : "applied";
        return r;
    }
    return err_set(err, -EINVAL, "unknown action %d", (int)action);
}

/* Too large to be read under the limits of the run, or not readable. */
static bool is_kept_unread(int code)
{
    return code == -EDQUOT || code == -EFBIG || code == -EACCES || code == -ETIMEDOUT;
}

static int harvest_within(struct worktree *worktree, struct runtime *runtime, uint64_t used,
        const struct conclude_bounds *bounds, struct harvest *out, struct carrel_error *err)
{
    const uint64_t disk_bytes = bounds->limits[LIMIT_DISK];
    const struct harvest_bounds harvest = {
        .max_bytes = used < disk_bytes ? disk_bytes - used : 0,
        .disk_bytes = disk_bytes,
        .limits = bounds->limits,
        .timeout_ms = bounds->timeout_ms,
    };

    int r = harvest_take(worktree, runtime, &harvest, out, err);
    return r < 0 && !is_kept_unread(r) ? harvest_wrap(worktree->ws, r, err) : r;
}

static struct outcome *outcome_of(const struct workspace *ws)
{
    struct outcome *outcome = calloc(1, sizeof(*outcome));

    if (!outcome)
        return NULL;
    outcome->tree = workspace_mode_name(ws->mode);
    outcome->path = strdup(ws->path);
    (void)snprintf(outcome->task, sizeof(outcome->task), "%s", ws->task);
    (void)snprintf(outcome->branch, sizeof(outcome->branch), "%s", ws->branch);
    (void)snprintf(outcome->base, sizeof(outcome->base), "%s", ws->base);
    return outcome;
}

int conclude_unread(const struct worktree *worktree, const struct carrel_error *why,
        struct outcome **out, struct carrel_error *err)
{
    struct outcome *outcome = outcome_of(worktree->ws);

    if (!outcome)
        return err_set_errno(err, -ENOMEM, "outcome");
    outcome->unread = *why;
    outcome->state = "kept";
    *out = outcome;
    return 0;
}

int conclude(struct worktree *worktree, struct runtime *runtime,
        enum carrel_outcome_action action, const char *seal,
        const struct conclude_bounds *bounds, struct outcome **out, struct carrel_error *err)
{
    struct workspace *ws = worktree->ws;
    struct harvest harvest = { 0 };
    uint64_t used;
    uint64_t inodes;

    AUTO(outcome_free) struct outcome *outcome = outcome_of(ws);
    if (!outcome)
        return err_set_errno(err, -ENOMEM, "outcome");

    /* New work directories first: git may have to run on them in a sandbox. */
    int r = workspace_renew(ws, err);
    if (r == 0)
        r = upper_usage(ws->dir, UINT64_MAX, &used, &inodes, err);
    if (r == 0 && action != CARREL_DISCARD)
        r = harvest_within(worktree, runtime, used, bounds, &harvest, err);
    if (action == CARREL_DISCARD && r == -EACCES)
        r = 0; /* unreadable files are discarded, too */
    if (is_kept_unread(r)) {
        outcome->unread = *err;
        action = CARREL_KEEP;
        r = 0;
    }
    if (r < 0)
        return r;
    outcome->oddities = ptr_steal(&harvest.oddities);
    outcome->n_oddities = harvest.n_oddities;
    if (action != CARREL_DISCARD && !outcome_is_unread(outcome)) {
        deliver_recognise(worktree);
        r = sum_up(worktree, outcome, err);
    }
    if (r == 0 && action != CARREL_DISCARD)
        r = workspace_end_use(ws, harvest.is_changed || outcome_is_unread(outcome), err);
    if (r == 0 && (action == CARREL_KEEP || action == CARREL_APPLY) && bounds->may_commit &&
            !outcome_is_unread(outcome))
        show_commits(worktree, outcome);
    if (r == 0)
        r = act(worktree, action, seal, outcome, err);
    if (r < 0)
        return r;
    *out = ptr_steal(&outcome);
    return 0;
}
