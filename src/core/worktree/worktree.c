/* worktree.c - making and reopening the worktree of a run. */
#include "core/worktree/worktree.h"
#include "base/err.h"
#include "core/request/permit.h"
#include "core/state/state.h"
#include "core/worktree/fork.h"
#include "core/worktree/prepare.h"
#include "core/worktree/tree_kind.h"
#include "git/name.h"
#include "workspace/renew.h"
#include "workspace/source/dirty.h"
#include "workspace/source/folder.h"
#include <assert.h>
#include <carrel/run.h>
#include <errno.h>
#include <limits.h>

static struct worktree *worktree_new(struct carrel_error *err)
{
    struct worktree *worktree = calloc(1, sizeof(*worktree));

    if (!worktree)
        (void)err_set_errno(err, -ENOMEM, "workspace");
    else if (state_path(worktree->state, sizeof(worktree->state), err) < 0 ||
             state_make(worktree->state, err) < 0)
        worktree_free(ptr_steal(&worktree));
    return worktree;
}

/* The commit to start from: a revision, or the user's uncommitted work as a commit. */
static int find_base(const struct repo *repo, const struct carrel_workspace_options *o,
        char base[static OID_MAX], struct carrel_error *err)
{
    if (o->is_dirty && o->base)
        return err_set(err, -EINVAL,
                "a run starts from uncommitted work (--dirty) or from a revision (--base), not "
                "both");
    return o->is_dirty ? dirty_commit(repo, base, err) : repo_resolve(repo, o->base, base, err);
}

/* What the run is to work on, if it may be shown. */
static int open_source(const struct worktree_request *q, struct worktree *worktree,
        char base[static OID_MAX], struct carrel_error *err)
{
    const struct carrel_workspace_options *o = q->options;
    const char *path = o->repo ? o->repo : ".";

    if (o->is_folder) {
        int r = permit_folder(q->policy, path, err);
        return r < 0 ? r : folder_snapshot(worktree->state, path, &worktree->repo, base, err);
    }
    int r = repo_open(path, &worktree->repo, err);
    if (r == 0)
        r = permit_repo(q->policy, worktree->repo, err);
    return r < 0 ? r : find_base(worktree->repo, o, base, err);
}

static int open_new(
        const struct worktree_request *q, struct worktree *worktree, struct carrel_error *err)
{
    const struct carrel_workspace_options *o = q->options;
    char base[OID_MAX];
    char setup[OID_MAX] = "";
    struct workspace_request request = {
        .state = worktree->state,
        .task = o->task ? o->task : q->task,
        .run = o->run ? o->run : q->run,
        .base = base,
        .is_folder = o->is_folder,
        .is_cut = o->history == CARREL_HISTORY_CUT,
        .setup = setup,
    };

    int r = name_check_id(request.task, "task", err);
    if (r == 0)
        r = name_check_id(request.run, "run", err);
    if (r == 0)
        r = open_source(q, worktree, base, err);
    if (r == 0)
        r = tree_kind_choose(q, worktree->state, &request.mode, err);
    if (r == 0)
        r = prepare_checkout(
                q, worktree->state, worktree->repo, base, &worktree->checkout, err);
    if (r == 0 && o->setup)
        r = prepare_setup(q, worktree, base, setup, err);
    if (r < 0)
        return r;
    request.repo = worktree->repo;
    request.checkout = worktree->checkout;
    r = workspace_create(&request, &worktree->ws, err);
    if (r == 0)
        r = prepare_tree(q, worktree, err);
    if (r == 0)
        r = worktree_make_mounts(worktree, err);
    if (r == 0)
        r = worktree_mount_monitor(worktree, o->program, err);
    if (r < 0 && worktree->ws) /* the first failure is the one to report */
        (void)worktree_discard(worktree, NULL);
    return r;
}

/* Ends what the last sandbox left, so that the next one can have the directories. */
static int renew(struct workspace *ws, struct carrel_error *err)
{
    int r = workspace_take_lock(ws, err);

    if (r == 0 && ws->phase == WORKSPACE_CREATING)
        return err_set(
                err, -ENOENT, "run '%s' was never made; carrel cleanup removes it", ws->run);
    if (r == 0 && ws->is_ahead)
        return err_set(err, -ESTALE,
                "commits were made on branch '%s' while it was open, and its files do not have "
                "them; go on in a new run: carrel run --base %s",
                ws->branch, ws->branch);
    if (r == 0 && ws->is_opened)
        return err_set(err, -EBUSY,
                "workspace '%s' is open on the host; close it first: carrel workspace close %s",
                ws->run, ws->run);
    if (r == 0)
        r = workspace_renew(ws, err);
    return r;
}

/* The cache may have lost it, when the machine stopped for one: then it is filled again, for
 * readers, too. */
static int find_checkout(struct worktree *worktree, struct carrel_error *err)
{
    const struct carrel_workspace_options options = { 0 };
    const struct sandbox_spec spec = { 0 };
    struct worktree_request q = { .options = &options, .spec = &spec };

    int r = runtime_find("local", &q.runtime, err);
    return r < 0 ? r
                 : prepare_checkout(&q, worktree->state, worktree->repo, worktree->ws->base,
                           &worktree->checkout, err);
}

int worktree_reopen(struct workspace *ws, struct worktree **out, struct carrel_error *err)
{
    AUTO(worktree_free) struct worktree *worktree = worktree_new(err);

    if (!worktree) {
        workspace_free(ws);
        return err->code;
    }
    assert(ws);
    worktree->ws = ws;
    int r = workspace_repo(ws, &worktree->repo, err);
    if (r == 0)
        r = find_checkout(worktree, err);
    if (r == 0)
        r = worktree_make_mounts(worktree, err);
    if (r < 0)
        return err_wrap(err, r, "workspace '%s'", ws->run);
    *out = ptr_steal(&worktree);
    return 0;
}

static int open_old(
        const struct worktree_request *q, struct worktree **out, struct carrel_error *err)
{
    AUTO(workspace_free) struct workspace *ws = NULL;
    AUTO(worktree_free) struct worktree *worktree = NULL;
    char state[PATH_MAX];

    int r = state_path(state, sizeof(state), err);
    if (r == 0)
        r = workspace_find(state, q->options->resume, &ws, err);
    if (r == 0)
        r = permit_workspace(q->policy, ws, err);
    if (r == 0)
        r = renew(ws, err);
    if (r == 0)
        r = prepare_again(q, state, ws, err);
    if (r == 0)
        r = worktree_reopen(ptr_steal(&ws), &worktree, err);
    if (r == 0)
        r = worktree_mount_monitor(worktree, q->options->program, err);
    if (r < 0)
        return r;
    *out = ptr_steal(&worktree);
    return 0;
}

int worktree_find_ids(const char *name, char task[static NAME_ID_MAX + 1],
        char run[static NAME_ID_MAX + 1], struct carrel_error *err)
{
    AUTO(workspace_free) struct workspace *ws = NULL;
    char state[PATH_MAX];

    int r = state_path(state, sizeof(state), err);
    if (r == 0)
        r = workspace_find(state, name, &ws, err);
    if (r < 0)
        return r;
    assert(ws); /* workspace_find() promises it */
    memcpy(task, ws->task, NAME_ID_MAX + 1);
    memcpy(run, ws->run, NAME_ID_MAX + 1);
    return 0;
}

int worktree_check_free(const char *task, const char *run, struct carrel_error *err)
{
    char state[PATH_MAX];

    int r = state_path(state, sizeof(state), err);
    return r < 0 ? r : workspace_check_free(state, task, run, err);
}

/* What of a workspace that was just made fails takes it along. */
static int finish_fork(struct worktree *worktree, int code, struct carrel_error *err)
{
    int r = code == 0 ? worktree_make_mounts(worktree, err) : code;

    if (r < 0 && worktree->ws) /* the first failure is the one to report */
        (void)worktree_discard(worktree, NULL);
    return r;
}

/* Seals the workspace that the options name, which must not be in use, and forks it. */
static int open_named_fork(
        const struct worktree_request *q, struct worktree *worktree, struct carrel_error *err)
{
    AUTO(workspace_free) struct workspace *ws = NULL;
    AUTO(worktree_free) struct worktree *from = NULL;
    AUTO(restack_origin_finish) struct worktree_origin origin = { 0 };

    int r = workspace_find(worktree->state, q->options->fork, &ws, err);
    if (r == 0)
        r = permit_workspace(q->policy, ws, err);
    if (r == 0)
        r = renew(ws, err);
    if (r == 0)
        r = prepare_again(q, worktree->state, ws, err);
    if (r == 0)
        r = worktree_reopen(ptr_steal(&ws), &from, err);
    if (r < 0)
        return r;
    assert(from);
    r = worktree_seal(from, err);
    if (r == 0)
        r = restack_origin(from->ws, NULL, &origin, err);
    return r < 0 ? r : finish_fork(worktree, worktree_fork(q, &origin, worktree, err), err);
}

int worktree_open(
        const struct worktree_request *request, struct worktree **out, struct carrel_error *err)
{
    int r;

    if (request->options->resume)
        return open_old(request, out, err);
    AUTO(worktree_free) struct worktree *worktree = worktree_new(err);
    if (!worktree)
        return err->code;
    if (request->origin)
        r = finish_fork(worktree, worktree_fork(request, request->origin, worktree, err), err);
    else if (request->options->fork)
        r = open_named_fork(request, worktree, err);
    else
        r = open_new(request, worktree, err);
    if (r < 0)
        return r;
    *out = ptr_steal(&worktree);
    return 0;
}

int worktree_discard(struct worktree *worktree, struct carrel_error *err)
{
    return restack_discard(worktree->state, worktree->ws, err);
}

void worktree_free(struct worktree *worktree)
{
    if (!worktree)
        return;
    for (size_t i = 0; i < worktree->n_strings; i++)
        free(worktree->strings[i]);
    free(worktree->strings);
    workplace_forget_mounts(worktree);
    workspace_free(worktree->ws);
    checkout_free(worktree->checkout);
    repo_free(worktree->repo);
    repo_free(worktree->target);
    free(worktree);
}
