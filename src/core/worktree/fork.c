/* fork.c - sealing and forking workspaces. */
#include "core/worktree/fork.h"
#include "base/err.h"
#include "base/fd.h"
#include "core/request/permit.h"
#include "core/worktree/layers.h"
#include "core/worktree/prepare.h"
#include "git/ref.h"
#include <assert.h>
#include <carrel/run.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define INCLUDED "carried" /* see include.c */

int worktree_check_fork(const struct workspace *ws, struct carrel_error *err)
{
    if (ws->mode == WORKSPACE_OVERLAY)
        return 0;
    return err_set(err, -ENOTSUP,
            "workspace '%s' is a tree of its own (%s), which cannot be forked without copying "
            "it; where overlays work it can",
            ws->run, workspace_mode_name(ws->mode));
}

int worktree_seal(struct worktree *worktree, struct carrel_error *err)
{
    int r = worktree_check_fork(worktree->ws, err);

    if (r == 0)
        r = layers_seal(worktree->layers, err);
    if (r == 0 && worktree->ws->layers)
        r = worktree_remount(worktree, err);
    return r < 0 ? err_wrap(err, r, "seal workspace '%s'", worktree->ws->run) : 0;
}

/* Copies the list of included files; the files themselves are in the layers. */
static int copy_included(
        const struct workspace *from, const struct workspace *to, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(64U << 20);
    AUTO(fd_close) int dir = open(from->path, O_PATH | O_DIRECTORY | O_CLOEXEC);

    int r = dir < 0 ? err_set_errno(err, -errno, "open '%s'", from->path)
                    : fd_add_file(dir, INCLUDED, &text, err);
    if (r < 0 || text.len == 0)
        return r;
    AUTO(fd_close)
    int fd = openat(to->dir, INCLUDED, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    r = fd < 0 ? -errno : fd_write_all(fd, text.data, text.len);
    return r < 0 ? err_set_errno(err, r, "write '%s/" INCLUDED "'", to->path) : 0;
}

/* The repository, the pristine tree and the layers: all that the fork will lie on. */
static int open_base(const struct worktree_request *q, const struct worktree_origin *origin,
        struct worktree *worktree, struct carrel_error *err)
{
    const struct workspace *from = origin->ws;

    int r = permit_workspace(q->policy, from, err);
    if (r == 0)
        r = workspace_repo(from, &worktree->repo, err);
    if (r == 0)
        r = prepare_checkout(
                q, worktree->state, worktree->repo, from->base, &worktree->checkout, err);
    return r < 0 ? r : worktree_open_layers(worktree, from, &origin->layers, err);
}

/* Whether the workspace has a ref for its base: then a fork needs one, too. */
static bool is_base_loose(const struct repo *repo, const struct workspace *from)
{
    char ref[WORKSPACE_REF_MAX];
    char at[OID_MAX];

    workspace_base_ref(from, ref);
    return !from->is_folder && ref_read(repo, ref, at, NULL) == 0;
}

int worktree_fork(const struct worktree_request *request, const struct worktree_origin *origin,
        struct worktree *worktree, struct carrel_error *err)
{
    const struct carrel_workspace_options *o = request->options;
    const struct workspace *from = origin->ws;
    char layers[LAYER_LIST_SIZE];

    int r = open_base(request, origin, worktree, err);
    if (r < 0)
        return r;
    assert(worktree->layers);
    layer_list_write(&origin->layers, layers);
    const struct workspace_request made = {
        .state = worktree->state,
        .repo = worktree->repo,
        .checkout = worktree->checkout,
        .task = o->task ? o->task : request->task,
        .run = o->run ? o->run : request->run,
        .base = from->base,
        .mode = WORKSPACE_OVERLAY,
        .is_folder = from->is_folder,
        .is_cut = from->is_cut,
        .setup = from->setup,
        .is_base_loose = is_base_loose(worktree->repo, from),
        .layers = layers,
        .git_below = worktree->layers->lower[LAYERS_GIT],
        .old_branch = from->branch,
    };
    r = workspace_create(&made, &worktree->ws, err);
    return r < 0 ? r : copy_included(from, worktree->ws, err);
}
