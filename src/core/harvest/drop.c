/* drop.c - discard and prune: work that exists nowhere else is removed only by force. */
#include "base/err.h"
#include "base/options.h"
#include "core/harvest/find.h"
#include "core/harvest/hold.h"
#include "core/record/review.h"
#include "core/state/state.h"
#include "core/worktree/sweep_layers.h"
#include "core/worktree/worktree.h"
#include "registry/list.h"
#include "workspace/renew.h"
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <time.h>

/*
 * True if everything the run made is on its branch, or it made nothing. That the work was
 * applied is enough for a discard by name, not for a prune: uncommitted files are easily reset.
 */
static bool is_safe_to_drop(const struct workspace *ws)
{
    return ws->n_other_commits == 0 &&
           (ws->is_published || strcmp(ws->snapshot, ws->base) == 0);
}

static int check_drop(const struct workspace *ws, struct carrel_error *err)
{
    if (!ws->is_published && !workspaces_is_applied(ws) && strcmp(ws->snapshot, ws->base) != 0)
        return err_set(err, -ENOTEMPTY,
                "run '%s' has work that is nowhere else; commit or apply it, or discard it "
                "with --force",
                ws->run);
    if (ws->n_other_commits > 0)
        return err_set(err, -ENOTEMPTY,
                "run '%s' has %" PRIu64 " commit%s on other branches or in its stash, and "
                "nowhere else; merge what is wanted into its branch (carrel workspace shell "
                "%s), or discard it all with --force",
                ws->run, ws->n_other_commits, ws->n_other_commits == 1 ? "" : "s", ws->run);
    return 0;
}

/* A branch that carrel made only to show the run's commits is removed with work that is forced
 * away or was applied. */
static void spare_branch(struct workspace *ws, bool is_forced)
{
    if (ws->is_branch_asked || !ws->branch_at[0] || (!is_forced && !workspaces_is_applied(ws)))
        return;
    ws->is_branch_spare = true;
    (void)workspace_save(ws, NULL); /* at worst the branch stays after a crash */
}

/*
 * The record comes first, so that no workspace disappears unrecorded; if the disk is full, the
 * discard makes room for it. `worktree` may be NULL.
 */
static int drop(const char *state, struct workspace *ws, struct worktree *worktree,
        struct carrel_error *err)
{
    int r = review_discard(ws, err);
    bool is_full = r == -ENOSPC || r == -EDQUOT;

    if (r < 0 && !is_full)
        return r;
    r = worktree ? worktree_discard(worktree, err) : discard_with_layers(state, ws, err);
    if (r < 0 || !is_full)
        return r;
    r = review_discard(ws, err);
    return r < 0 ? err_wrap(err, r, "run '%s' is discarded, which its journal does not say",
                           ws->run)
                 : 0;
}

/* The living sandbox that has the workspace "T/R"; false: none. */
static bool find_sandbox(const char *name, char id[static REGISTRY_WORD_MAX + 1])
{
    const struct registry_query query = { .has_dead = true };
    AUTO(registry_close) struct registry reg = REGISTRY_NONE;
    AUTO(registry_list_finish) struct registry_list list = { 0 };

    if (registry_open(&reg, NULL) < 0 || registry_list_read(&reg, &query, &list, NULL) < 0)
        return false;
    for (size_t i = 0; i < list.n; i++) {
        char whose[2 * NAME_ID_MAX + 2];
        (void)snprintf(whose, sizeof(whose), "%s/%s", list.items[i].task, list.items[i].run);
        if (!list.items[i].is_alive || strcmp(whose, name) != 0)
            continue;
        (void)snprintf(id, REGISTRY_WORD_MAX + 1, "%s", list.items[i].id);
        return true;
    }
    return false;
}

/* --force does not remove a workspace in use; the message says how to end the use. */
static int say_how_to_end(const char *name, int code, struct carrel_error *err)
{
    const struct carrel_error busy = *err;
    char id[REGISTRY_WORD_MAX + 1];

    return find_sandbox(name, id)
                   ? err_set(err, code, "%s, or end it with 'carrel destroy %s'", busy.message,
                             id)
                   : err_set(err, code,
                             "%s, or end it with SIGTERM: what was written until then is kept",
                             busy.message);
}

static int discard(const char *name, enum carrel_discard what, struct carrel_error *err)
{
    char state[PATH_MAX];
    AUTO(workspace_free) struct workspace *ws = NULL;
    AUTO(worktree_free) struct worktree *worktree = NULL;

    int r = state_path(state, sizeof(state), err);
    if (r == 0 && what == CARREL_DISCARD_SAVED) {
        r = workspaces_hold_worktree(name, &worktree, NULL, NULL, err);
        if (r == -EBUSY)
            return say_how_to_end(name, r, err);
        if (r < 0)
            return err_wrap(
                    err, r, "what run '%s' changed is not known (--force discards it)", name);
        r = check_drop(worktree->ws, err);
        if (r < 0)
            return r;
        spare_branch(worktree->ws, false);
        return drop(state, worktree->ws, worktree, err);
    }
    if (r == 0)
        r = workspaces_hold(name, &ws, err);
    if (r == -EBUSY)
        return say_how_to_end(name, r, err);
    if (r < 0)
        return r;
    assert(ws);
    spare_branch(ws, true);
    return drop(state, ws, NULL, err);
}

int carrel_workspace_discard(const struct carrel_workspace *workspace, enum carrel_discard what,
        struct carrel_error *err)
{
    return discard(workspace->name, what, ERR_OR_IGNORED(err));
}

/* Whether a look without its lock says that it can be pruned; discard() looks again. */
static bool is_prunable(const struct workspace *ws, int64_t limit)
{
    return ws->phase == WORKSPACE_FINISHED && !ws->is_user_locked && !ws->is_opened &&
           ws->created_s <= limit && is_safe_to_drop(ws) && !workspace_is_in_use(ws);
}

int carrel_workspace_prune(const struct carrel_workspace_prune_options *options,
        int (*visit)(const struct carrel_workspace_info *info, void *context), void *context,
        struct carrel_error *err)
{
    struct carrel_workspace_prune_options own = CARREL_WORKSPACE_PRUNE_OPTIONS_INIT;
    AUTO(workspace_list_free) struct workspace_list *list = NULL;

    err = ERR_OR_IGNORED(err);
    int r = OPTIONS_TAKE(&own, options, CARREL_WORKSPACE_PRUNE_OPTIONS_INIT, err);
    if (r == 0)
        r = workspaces_list(own.dir, &list, err);
    const int64_t limit = (int64_t)time(NULL) - (int64_t)own.older_than_s;
    for (size_t i = 0; r == 0 && i < list->n; i++) {
        struct carrel_workspace_info info;
        char name[WORKSPACE_NAME_MAX];
        if (!is_prunable(list->items[i], limit))
            continue;
        workspaces_view(list->items[i], name, &info);
        if (!own.is_dry_run)
            r = discard(name, CARREL_DISCARD_SAVED, err);
        if (r == -ENOTEMPTY || r == -EBUSY || r == -ENOENT)
            r = 0; /* it has changed, is in use, or was removed meanwhile */
        else if (r == 0 && visit)
            r = visit(&info, context);
    }
    return r;
}
