/* worktree.c - making and reopening a run's place to work. */
#include "core/worktree/worktree.h"
#include "base/err.h"
#include "core/request/permit_paths.h"
#include "core/state/state.h"
#include "core/worktree/fork.h"
#include "core/worktree/fuse.h"
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

static struct workplace *place_new(struct carrel_error *err)
{
    struct workplace *place = calloc(1, sizeof(*place));

    if (!place)
        (void)err_set_errno(err, -ENOMEM, "workspace");
    else if (state_path(place->state, sizeof(place->state), err) < 0 ||
             state_make(place->state, err) < 0)
        workplace_free(ptr_steal(&place));
    return place;
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
static int open_source(const struct workplace_request *q, struct workplace *place,
        char base[static OID_MAX], struct carrel_error *err)
{
    const struct carrel_workspace_options *o = q->options;
    const char *path = o->repo ? o->repo : ".";

    if (o->is_folder) {
        int r = permit_folder(q->policy, path, err);
        return r < 0 ? r : folder_snapshot(place->state, path, &place->repo, base, err);
    }
    int r = repo_open(path, &place->repo, err);
    if (r == 0)
        r = permit_repo(q->policy, place->repo, err);
    return r < 0 ? r : find_base(place->repo, o, base, err);
}

static int open_new(
        const struct workplace_request *q, struct workplace *place, struct carrel_error *err)
{
    const struct carrel_workspace_options *o = q->options;
    char base[OID_MAX];
    char setup[OID_MAX] = "";
    struct workspace_request request = {
        .state = place->state,
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
        r = open_source(q, place, base, err);
    if (r == 0)
        r = tree_kind_choose(q, place->state, &request.mode, err);
    if (r == 0)
        r = prepare_checkout(q, place->state, place->repo, base, &place->checkout, err);
    if (r == 0 && o->setup)
        r = prepare_setup(q, place, base, setup, err);
    if (r < 0)
        return r;
    request.repo = place->repo;
    request.checkout = place->checkout;
    r = workspace_create(&request, &place->ws, err);
    if (r == 0)
        r = prepare_tree(q, place, err);
    if (r == 0)
        r = workplace_make_mounts(place, err);
    if (r == 0)
        r = workplace_mount_monitor(place, o->program, err);
    if (r < 0 && place->ws) /* the first failure is the one to report */
        (void)workplace_discard(place, NULL);
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
    if (r == 0 && ws->mode == WORKSPACE_FUSE)
        r = fuse_unmount(ws, err); /* of a process that was killed */
    if (r == 0)
        r = workspace_renew(ws, err);
    return r;
}

/* The cache may have lost it, when the machine stopped for one: then it is filled again, for
 * whoever only looks, too. */
static int find_checkout(struct workplace *place, struct carrel_error *err)
{
    const struct carrel_workspace_options options = { 0 };
    const struct sandbox_spec spec = { 0 };
    struct workplace_request q = { .options = &options, .spec = &spec };

    int r = runtime_find("local", &q.runtime, err);
    return r < 0 ? r
                 : prepare_checkout(&q, place->state, place->repo, place->ws->base,
                           &place->checkout, err);
}

int workplace_reopen(struct workspace *ws, struct workplace **out, struct carrel_error *err)
{
    AUTO(workplace_free) struct workplace *place = place_new(err);

    if (!place) {
        workspace_free(ws);
        return err->code;
    }
    assert(ws);
    place->ws = ws;
    int r = workspace_repo(ws, &place->repo, err);
    if (r == 0)
        r = find_checkout(place, err);
    if (r == 0)
        r = workplace_make_mounts(place, err);
    if (r < 0)
        return err_wrap(err, r, "workspace '%s'", ws->run);
    *out = ptr_steal(&place);
    return 0;
}

static int open_old(
        const struct workplace_request *q, struct workplace **out, struct carrel_error *err)
{
    AUTO(workspace_free) struct workspace *ws = NULL;
    AUTO(workplace_free) struct workplace *place = NULL;
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
        r = workplace_reopen(ptr_steal(&ws), &place, err);
    if (r == 0)
        r = workplace_mount_monitor(place, q->options->program, err);
    if (r < 0)
        return r;
    *out = ptr_steal(&place);
    return 0;
}

int workplace_find_ids(const char *name, char task[static NAME_ID_MAX + 1],
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

int workplace_check_free(const char *task, const char *run, struct carrel_error *err)
{
    char state[PATH_MAX];

    int r = state_path(state, sizeof(state), err);
    return r < 0 ? r : workspace_check_free(state, task, run, err);
}

/* What of a workspace that was just made fails takes it along. */
static int finish_fork(struct workplace *place, int code, struct carrel_error *err)
{
    int r = code == 0 ? workplace_make_mounts(place, err) : code;

    if (r < 0 && place->ws) /* the first failure is the one to report */
        (void)workplace_discard(place, NULL);
    return r;
}

/* Seals the workspace that the options name, which nobody may be using, and forks it. */
static int open_named_fork(
        const struct workplace_request *q, struct workplace *place, struct carrel_error *err)
{
    AUTO(workspace_free) struct workspace *ws = NULL;
    AUTO(workplace_free) struct workplace *from = NULL;
    AUTO(restack_origin_finish) struct restack_origin origin = { 0 };

    int r = workspace_find(place->state, q->options->fork, &ws, err);
    if (r == 0)
        r = permit_workspace(q->policy, ws, err);
    if (r == 0)
        r = renew(ws, err);
    if (r == 0)
        r = prepare_again(q, place->state, ws, err);
    if (r == 0)
        r = workplace_reopen(ptr_steal(&ws), &from, err);
    if (r < 0)
        return r;
    assert(from);
    r = restack_seal(from, err);
    if (r == 0)
        r = restack_origin(from->ws, NULL, &origin, err);
    return r < 0 ? r : finish_fork(place, restack_fork(q, &origin, place, err), err);
}

int workplace_open(const struct workplace_request *request, struct workplace **out,
        struct carrel_error *err)
{
    int r;

    if (request->options->resume)
        return open_old(request, out, err);
    AUTO(workplace_free) struct workplace *place = place_new(err);
    if (!place)
        return err->code;
    if (request->origin)
        r = finish_fork(place, restack_fork(request, request->origin, place, err), err);
    else if (request->options->fork)
        r = open_named_fork(request, place, err);
    else
        r = open_new(request, place, err);
    if (r < 0)
        return r;
    *out = ptr_steal(&place);
    return 0;
}

int workplace_discard(struct workplace *place, struct carrel_error *err)
{
    int r = place->is_fuse ? fuse_unmount(place->ws, err) : 0;

    if (r < 0)
        return r;
    place->is_fuse = false;
    return restack_discard(place->state, place->ws, err);
}

void workplace_free(struct workplace *place)
{
    if (!place)
        return;
    for (size_t i = 0; i < place->n_strings; i++)
        free(place->strings[i]);
    free(place->strings);
    if (place->is_fuse)
        (void)fuse_unmount(place->ws, NULL); /* else the sweep does */
    workplace_forget_mounts(place);
    workspace_free(place->ws);
    checkout_free(place->checkout);
    repo_free(place->repo);
    repo_free(place->target);
    free(place);
}
