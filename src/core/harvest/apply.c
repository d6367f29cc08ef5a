/* apply.c - the verb apply: a run's work into the user's files, or onto the user's branch. */
#include "base/err.h"
#include "base/options.h"
#include "core/harvest/deliver.h"
#include "core/harvest/find.h"
#include "core/harvest/hold.h"
#include "core/record/recorder.h"
#include "core/record/review.h"
#include "core/worktree/target.h"
#include "core/worktree/worktree.h"
#include <errno.h>

/* What the caller sees, and what it points to. */
struct outcome_view {
    struct carrel_apply_outcome public;
    struct apply_outcome own;
    struct carrel_apply_conflict *conflicts;
    const struct carrel_apply_conflict **list;
};

void carrel_apply_outcome_free(struct carrel_apply_outcome *outcome)
{
    if (!outcome)
        return;
    struct outcome_view *view = container_of(outcome, struct outcome_view, public);
    apply_outcome_finish(&view->own);
    free(view->conflicts);
    free(view->list);
    free(view);
}

static void outcome_view_free(struct outcome_view *view)
{
    carrel_apply_outcome_free(view ? &view->public : NULL);
}
DEFINE_AUTO(struct outcome_view *, outcome_view_free)

static int fill(struct outcome_view *view, struct carrel_error *err)
{
    const struct apply_outcome *own = &view->own;

    view->conflicts = calloc(own->n_conflicts + 1, sizeof(*view->conflicts));
    view->list = calloc(own->n_conflicts + 1, sizeof(struct carrel_apply_conflict *));
    if (!view->conflicts || !view->list)
        return err_set_errno(err, -ENOMEM, "outcome");
    for (size_t i = 0; i < own->n_conflicts; i++) {
        view->conflicts[i] = (struct carrel_apply_conflict){
            .size = sizeof(view->conflicts[i]),
            .path = own->conflicts[i].path,
            .why = own->conflicts[i].why,
        };
        view->list[i] = &view->conflicts[i];
    }
    view->public = (struct carrel_apply_outcome){
        .size = sizeof(view->public),
        .conflicts = view->list,
        .n_conflicts = own->n_conflicts,
        .n_files = own->n_files,
        .n_submodules = own->n_submodules,
        .commit = own->commit[0] ? own->commit : NULL,
        .top = own->top,
        .branch = own->branch,
    };
    return 0;
}

static const struct {
    enum apply_how how;
    const char *event;
} ways[] = {
    [CARREL_APPLY_FILES] = { APPLY_FILES, "workspace_applied" },
    [CARREL_APPLY_SQUASH] = { APPLY_SQUASH, "workspace_squashed" },
    [CARREL_APPLY_MERGE] = { APPLY_MERGE, "workspace_merged" },
    [CARREL_APPLY_CHERRY_PICK] = { APPLY_CHERRY_PICK, "workspace_cherry_picked" },
};

static int apply(const char *name, const struct carrel_apply_options *options,
        struct apply_outcome *out, struct carrel_error *err)
{
    AUTO(worktree_free) struct worktree *worktree = NULL;
    AUTO(recorder_finish) struct recorder recorder = { 0 };

    int r = workspaces_hold_worktree(name, &worktree, NULL, NULL, err);
    if (r == 0)
        r = target_choose(worktree, options->repo, options->here, err);
    if (r == 0)
        r = review_begin(worktree->ws, "apply_asked", &recorder, err);
    if (r == 0)
        r = workspaces_explain(worktree->repo, worktree->ws,
                deliver_apply(worktree, ways[options->how].how, recorder.seal, out, err), err);
    if (r == 0 && worktree->ws->is_folder) { /* that of a hidden repository */
        free(out->branch);
        out->branch = NULL;
    }
    if (r < 0 || out->n_conflicts > 0)
        return r;
    return review_end(worktree->ws, ways[options->how].event, &recorder, err);
}

int carrel_workspace_apply(const struct carrel_workspace *workspace,
        const struct carrel_apply_options *options, struct carrel_apply_outcome **out,
        struct carrel_error *err)
{
    struct carrel_apply_options own = CARREL_APPLY_OPTIONS_INIT;

    err = ERR_OR_IGNORED(err);
    int r = OPTIONS_TAKE(&own, options, CARREL_APPLY_OPTIONS_INIT, err);
    if (r < 0)
        return r;
    if (own.how >= ARRAY_LEN(ways))
        return err_set(err, -EINVAL, "there is no way %u to apply", (unsigned)own.how);
    AUTO(outcome_view_free) struct outcome_view *view = calloc(1, sizeof(*view));
    if (!view)
        return err_set_errno(err, -ENOMEM, "outcome");
    r = apply(workspace->name, &own, &view->own, err);
    if (r == 0)
        r = fill(view, err);
    if (r < 0)
        return r;
    *out = &ptr_steal(&view)->public;
    return 0;
}
