/* fork.c - sealing and forking workspaces. */
#include "core/worktree/fork.h"
#include "base/err.h"
#include "base/fd.h"
#include "core/request/permit.h"
#include "core/worktree/prepare.h"
#include "core/worktree/sweep_layers.h"
#include "layer/layer.h"
#include "workspace/stack.h"
#include <carrel/run.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

_Static_assert(STACK_MAX == LAYER_MAX_CHAIN && STACK_ID_MAX >= LAYER_ID_SIZE,
        "the record of a workspace has room for the layers there can be");

#define CARRIED "carried" /* see carry.c */

/* Layers that are held while something is made of them. */
struct held {
    struct layer layers[STACK_MAX];
    size_t n;
};

static void held_close(struct held held)
{
    for (size_t i = 0; i < held.n; i++)
        layer_close(held.layers[i]);
}
DEFINE_AUTO(struct held, held_close)

static int hold(const char *state, const struct workspace *ws, struct held *held,
        struct carrel_error *err)
{
    char ids[STACK_MAX][STACK_ID_MAX];

    int n = stack_list(ws, ids);
    if (n < 0)
        return err_set(
                err, n, "the record of workspace '%s' has a damaged list of layers", ws->run);
    for (int i = 0; i < n; i++) {
        int r = layer_open(state, ids[i], &held->layers[i], err);
        if (r < 0)
            return r;
        held->n++;
    }
    return 0;
}

int restack_check(const struct workspace *ws, struct carrel_error *err)
{
    if (ws->mode == WORKSPACE_OVERLAY)
        return 0;
    return err_set(err, -ENOTSUP,
            "workspace '%s' is a tree of its own (%s), which cannot be forked without copying "
            "it; where overlays work it can",
            ws->run, workspace_mode_name(ws->mode));
}

static int make_git_part(const struct layer *layer, struct carrel_error *err)
{
    if (mkdirat(layer->dir, "gitupper", 0700) < 0 ||
            fchmodat(layer->dir, "gitupper", 0755, 0) < 0)
        return err_set_errno(err, -errno, "create '%s/gitupper'", layer->path);
    return 0;
}

/* One layer in the place of all, which go when nobody else has them. */
static int shorten(struct worktree *worktree, struct carrel_error *err)
{
    struct workspace *ws = worktree->ws;
    AUTO(held_close) struct held held = { .n = 0 };
    AUTO(layer_close) struct layer merged = LAYER_INIT;
    char ids[1][STACK_ID_MAX];

    int r = hold(worktree->state, ws, &held, err);
    if (r < 0 || held.n < STACK_MAX - 1)
        return r;
    for (size_t i = 0; r == 0 && i < held.n; i++) /* one that a crash left without its seal */
        r = layer_seal(&held.layers[i], err);
    if (r == 0)
        r = layer_merge_both(worktree->state, held.layers, held.n, worktree->lower + held.n,
                ws->is_folder ? NULL : worktree->git_lower + held.n, &merged, err);
    if (r < 0)
        return r;
    (void)snprintf(ids[0], sizeof(ids[0]), "%s", merged.id);
    r = stack_replace(ws, ids, 1, err);
    return r < 0 ? r : worktree_remount(worktree, err);
}

int worktree_seal(struct worktree *worktree, struct carrel_error *err)
{
    AUTO(layer_close) struct layer layer = LAYER_INIT;

    int r = restack_check(worktree->ws, err);
    if (r < 0 || stack_is_fresh(worktree->ws))
        return r;
    r = shorten(worktree, err);
    if (r == 0)
        r = layer_new(worktree->state, &layer, err);
    if (r == 0 && !worktree->ws->is_folder)
        r = make_git_part(&layer, err);
    if (r == 0)
        r = stack_put(worktree->ws, layer.dir, layer.id, err);
    if (r == 0)
        r = layer_seal(&layer, err);
    if (r == 0)
        r = worktree_remount(worktree, err);
    return r < 0 ? err_wrap(err, r, "seal workspace '%s'", worktree->ws->run) : 0;
}

int restack_copy(const struct worktree *worktree, struct layer *out, struct carrel_error *err)
{
    const struct workspace *ws = worktree->ws;
    struct layer from = { .path = ws->path, .dir = ws->dir, .lock = -1 };

    int r = restack_check(ws, err);
    (void)snprintf(from.id, sizeof(from.id), "workspace");
    return r < 0 ? r : layer_copy(worktree->state, &from, out, err);
}

void restack_origin_finish(struct worktree_origin origin)
{
    free(origin.layers);
}

int restack_origin(const struct workspace *ws, const struct layer *copy,
        struct worktree_origin *out, struct carrel_error *err)
{
    char ids[STACK_MAX + 1][STACK_ID_MAX];

    int r = restack_check(ws, err);
    if (r < 0)
        return r;
    int n = stack_list(ws, ids + 1);
    if (n < 0)
        return err_set(
                err, n, "the record of workspace '%s' has a damaged list of layers", ws->run);
    if (n + (copy != NULL) > STACK_MAX)
        return err_set(err, -E2BIG, "workspace '%s' has too many layers", ws->run);
    if (copy)
        (void)snprintf(ids[0], sizeof(ids[0]), "%s", copy->id);
    char *text = stack_text(copy ? ids : ids + 1, (size_t)n + (copy != NULL));
    if (!text)
        return err_set_errno(err, -ENOMEM, "layers");
    *out = (struct worktree_origin){ .ws = ws, .layers = text };
    return 0;
}

/* The list of files that were carried along: they lie in the layers now. */
static int copy_carried(
        const struct workspace *from, const struct workspace *to, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(64U << 20);
    AUTO(fd_close) int dir = open(from->path, O_PATH | O_DIRECTORY | O_CLOEXEC);

    int r = dir < 0 ? err_set_errno(err, -errno, "open '%s'", from->path)
                    : fd_add_file(dir, CARRIED, &text, err);
    if (r < 0 || text.len == 0)
        return r;
    AUTO(fd_close)
    int fd = openat(to->dir, CARRIED, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    r = fd < 0 ? -errno : fd_write_all(fd, text.data, text.len);
    return r < 0 ? err_set_errno(err, r, "write '%s/" CARRIED "'", to->path) : 0;
}

static int open_base(const struct worktree_request *q, const struct workspace *from,
        struct worktree *worktree, struct carrel_error *err)
{
    int r = permit_workspace(q->policy, from, err);
    if (r == 0)
        r = workspace_repo(from, &worktree->repo, err);
    return r < 0 ? r
                 : prepare_checkout(q, worktree->state, worktree->repo, from->base,
                           &worktree->checkout, err);
}

/* What the git dir of the fork will lie on: paths, NULL at the end. */
static int list_git_below(const struct held *held, const struct worktree *worktree,
        const char **below, char (*paths)[PATH_MAX], struct carrel_error *err)
{
    for (size_t i = 0; i < held->n; i++) {
        if (snprintf(paths[i], PATH_MAX, "%s/gitupper", held->layers[i].path) >= PATH_MAX)
            return err_set_errno(err, -ENAMETOOLONG, "'%s'", held->layers[i].path);
        below[i] = paths[i];
    }
    below[held->n] = worktree->checkout->git;
    below[held->n + 1] = NULL;
    return 0;
}

int worktree_fork(const struct worktree_request *request, const struct worktree_origin *origin,
        struct worktree *worktree, struct carrel_error *err)
{
    const struct carrel_workspace_options *o = request->options;
    struct workspace from = *origin->ws;
    AUTO(held_close) struct held held = { .n = 0 };
    const char *below[STACK_MAX + 2];

    from.layers = origin->layers;
    int r = hold(worktree->state, &from, &held, err);
    if (r == 0)
        r = open_base(request, &from, worktree, err);
    if (r < 0)
        return r;
    AUTO(free) char(*paths)[PATH_MAX] = calloc(held.n + 1, sizeof(*paths));
    if (!paths)
        return err_set_errno(err, -ENOMEM, "layers");
    r = from.is_folder ? 0 : list_git_below(&held, worktree, below, paths, err);
    if (r < 0)
        return r;
    const struct workspace_request made = {
        .state = worktree->state,
        .repo = worktree->repo,
        .checkout = worktree->checkout,
        .task = o->task ? o->task : request->task,
        .run = o->run ? o->run : request->run,
        .base = from.base,
        .mode = WORKSPACE_OVERLAY,
        .is_folder = from.is_folder,
        .is_cut = from.is_cut,
        .setup = from.setup,
        .layers = origin->layers,
        .git_below = below,
        .old_branch = from.branch,
    };
    r = workspace_create(&made, &worktree->ws, err);
    return r < 0 ? r : copy_carried(&from, worktree->ws, err);
}

struct naming {
    struct layer_names *names;
    struct carrel_error *err;
};

static int add_layers(struct workspace **ws, void *context)
{
    const struct naming *naming = context;
    char ids[STACK_MAX][STACK_ID_MAX];

    /* Whose record cannot be read may lie on any of them. */
    int n = (*ws)->repo[0] ? stack_list(*ws, ids) : -EBADMSG;
    if (n < 0)
        return err_set(naming->err, n, "it is not known on which layers workspace '%s/%s' lies",
                (*ws)->task, (*ws)->run);
    int r = 0;
    for (int i = 0; r == 0 && i < n; i++)
        r = layer_names_add(naming->names, ids[i]);
    return r < 0 ? err_set_errno(naming->err, r, "layers") : 0;
}

int restack_names(struct layer_names *names, void *state, struct carrel_error *err)
{
    struct naming naming = { .names = names, .err = err };

    return workspace_each(state, NULL, add_layers, &naming, err);
}

int restack_discard(const char *state, struct workspace *ws, struct carrel_error *err)
{
    bool has_layers = ws->layers != NULL;

    int r = workspace_discard(state, ws, err);
    if (r == 0 && has_layers)
        (void)sweep_layers(state, NULL); /* else `carrel cleanup` does */
    return r;
}
