/* hold.c - finds and locks a workspace; harvests it if its run was killed before that. */
#include "core/harvest/hold.h"
#include "base/err.h"
#include "core/harvest/deliver.h"
#include "core/harvest/harvest.h"
#include "core/state/state.h"
#include "core/worktree/worktree.h"
#include "git/ref.h"
#include "workspace/harvest/upper.h"
#include "workspace/renew.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>

#define LATER_DISK (UINT64_C(1) << 30)

bool workspaces_is_applied(const struct workspace *ws)
{
    return ws->applied[0] && strcmp(ws->applied, ws->snapshot) == 0;
}

bool workspaces_is_withdrawn(const struct workspace *ws)
{
    AUTO(repo_free) struct repo *repo = NULL;
    char branch[WORKSPACE_REF_MAX];
    char at[OID_MAX];

    if (!ws->is_published)
        return false;
    if (workspace_repo(ws, &repo, NULL) < 0)
        return true;
    workspace_branch_ref(ws, branch);
    return (ref_read(repo, branch, at, NULL) < 0 || strcmp(at, ws->snapshot) != 0) &&
           !ref_others_have(repo, "", ws->snapshot);
}

int workspaces_hold(const char *name, struct workspace **out, struct carrel_error *err)
{
    char state[PATH_MAX];
    AUTO(workspace_free) struct workspace *ws = NULL;

    int r = state_path(state, sizeof(state), err);
    if (r == 0)
        r = workspace_find(state, name, &ws, err);
    if (r == 0)
        r = workspace_take_lock(ws, err);
    if (r < 0)
        return r;
    *out = ptr_steal(&ws);
    return 0;
}

int workspaces_explain(
        const struct repo *repo, const struct workspace *ws, int code, struct carrel_error *err)
{
    if (code >= 0 || ws->is_folder || repo_has_commit(repo, ws->base, NULL) != 0)
        return code;
    return err_set(err, -ESTALE,
            "commit %.12s, which run '%s' began with, is not in '%s' any more: no branch had "
            "it, and git gc removed it; fetch it from where it still is, or take the changed "
            "files from '%s/upper'",
            ws->base, ws->run, repo->top ? repo->top : repo->git_dir, ws->path);
}

/* The limits of the run are no longer known; git in a sandbox gets default ones. */
static int harvest_later(struct worktree *worktree, struct runtime *runtime,
        struct harvest *out, struct carrel_error *err)
{
    struct harvest_bounds bounds = { .max_bytes = UINT64_MAX };
    uint64_t inodes;

    int r = upper_usage(worktree->ws->dir, UINT64_MAX, &bounds.disk_bytes, &inodes, err);
    bounds.disk_bytes += LATER_DISK;
    if (r < 0)
        return r;
    r = harvest_take(worktree, runtime, &bounds, out, err);
    if (r < 0)
        (void)harvest_wrap(worktree->ws, r, err);
    return workspaces_explain(worktree->repo, worktree->ws, r, err);
}

int workspaces_hold_worktree(const char *name, struct worktree **out, struct oddity **oddities,
        size_t *n_oddities, struct carrel_error *err)
{
    AUTO(workspace_free) struct workspace *ws = NULL;
    AUTO(worktree_free) struct worktree *worktree = NULL;
    struct harvest harvest = { 0 };
    struct runtime *runtime;

    int r = workspaces_hold(name, &ws, err);
    if (r == 0 && ws->phase == WORKSPACE_CREATING)
        return err_set(err, -ENOENT,
                "workspace '%s' was never finished; carrel cleanup removes it", name);
    if (r == 0 && workspaces_is_withdrawn(ws)) {
        ws->is_published = false;
        ws->phase = WORKSPACE_READY; /* its files are still there: harvest them again */
    }
    if (r == 0)
        r = worktree_reopen(ptr_steal(&ws), &worktree, err);
    if (r == 0)
        r = runtime_find("local", &runtime, err);
    const bool is_whole = r == 0 && !worktree->ws->is_opened && !worktree->ws->is_ahead;
    if (is_whole && oddities && worktree->ws->phase == WORKSPACE_FINISHED)
        r = harvest_oddities(worktree, &harvest, err);
    if (is_whole && worktree->ws->phase != WORKSPACE_FINISHED) {
        r = workspace_renew(worktree->ws, err);
        if (r == 0)
            r = harvest_later(worktree, runtime, &harvest, err);
        if (r == 0)
            r = workspace_end_use(worktree->ws, false, err);
        if (r == 0)
            deliver_recognise(worktree);
    }
    if (r == 0 && oddities) {
        *oddities = ptr_steal(&harvest.oddities);
        *n_oddities = harvest.n_oddities;
        harvest.n_oddities = 0;
    }
    harvest_finish(&harvest);
    if (r < 0)
        return r;
    *out = ptr_steal(&worktree);
    return 0;
}
