/*
 * prepare.c - the parts of making a workspace that may take time, each done once and kept.
 */
#include "core/worktree/prepare.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/tree.h"
#include "core/worktree/fallback.h"
#include "core/worktree/helper.h"
#include "core/worktree/helper_space.h"
#include "core/worktree/include.h"
#include "core/worktree/settle_sh.h"
#include "core/worktree/shallow.h"
#include "core/worktree/worktree.h"
#include "git/ref.h"
#include "workspace/private.h"
#include "workspace/source/folder.h"
#include <carrel/run.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define SETTLE_TIMEOUT_MS 120000U
#define SETTLE_MAX_ALTERNATES 8U

/* The directories of a draft's tree, topmost first. */
static const char **draft_lower(const struct checkout_draft *draft, char *top, size_t size)
{
    size_t n = 0;

    while (draft->below && draft->below->lower[n])
        n++;
    const char **lower = calloc(n + 2, sizeof(*lower));
    if (!lower)
        return NULL;
    (void)snprintf(top, size, "%s/%s", draft->entry.path, draft->below ? "layer" : "tree");
    lower[0] = top;
    for (size_t i = 0; i < n; i++)
        lower[i + 1] = draft->below->lower[i];
    return lower;
}

/*
 * Lets git look at the tree once where every run will see it, so that the index holds an
 * untracked cache that is valid there: git then need not read directories that did not change.
 * And with a monitor that answers "look at everything": git notes for each file that it did,
 * and will ask before it looks again. Twice, a second apart: a directory that changed in this
 * second is not trusted. What comes out was written by git alone, on committed content, with
 * no other process in the sandbox.
 */
static int settle(const struct worktree_request *q, const struct repo *repo,
        struct checkout_draft *draft, int dir, struct carrel_error *err)
{
    char top[PATH_MAX];
    char git[PATH_MAX];
    char space[PATH_MAX];
    AUTO(free) const char **lower = draft_lower(draft, top, sizeof(top));
    AUTO(helper_finish) struct helper helper = HELPER_INIT;

    if (!lower)
        return err_set_errno(err, -ENOMEM, "settle");
    (void)snprintf(git, sizeof(git), "%s/git", draft->entry.path);
    (void)snprintf(space, sizeof(space), "%s/space", draft->entry.path);
    int r = helper_space_make(dir, "space", err);
    if (r < 0)
        return r;
    AUTO(fd_close)
    int upper = openat(dir, "space/gitupper", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    r = private_make_upper(repo, upper, "settle", draft->commit, err);
    if (r < 0)
        return r;
    const struct sandbox_overlay tree = helper_space_overlay(lower, space);
    const struct sandbox_overlay private = {
        .lower = (const char *const[]){ git, NULL },
        .space = space,
        .upper = "gitupper",
        .work = "gitwork",
    };
    struct sandbox_mount mounts[3 + SETTLE_MAX_ALTERNATES] = {
        helper_space_mount(&tree, PRIVATE_WORK_TREE),
        helper_space_mount(&private, PRIVATE_GIT_DIR),
        { .target = PRIVATE_OBJECTS,
                .source = repo->objects[0],
                .source_fd = &repo->object_fds[0] },
    };
    char targets[SETTLE_MAX_ALTERNATES][sizeof(PRIVATE_OBJECTS) + 8];
    size_t n_mounts = 3;
    for (size_t i = 1; repo->objects[i]; i++, n_mounts++) {
        if (i > SETTLE_MAX_ALTERNATES)
            return err_set(err, -E2BIG, "more than %u alternates", SETTLE_MAX_ALTERNATES);
        (void)snprintf(targets[i - 1], sizeof(targets[0]), PRIVATE_OBJECTS "-%zu", i);
        mounts[n_mounts].target = targets[i - 1];
        mounts[n_mounts].source = repo->objects[i];
        mounts[n_mounts].source_fd = &repo->object_fds[i];
    }
    const struct helper_spec spec = {
        .runtime = q->runtime,
        .mounts = mounts,
        .n_mounts = n_mounts,
        .has_user = q->spec->has_user,
        .uid = q->spec->uid,
        .gid = q->spec->gid,
        .script = settle_sh,
    };
    r = helper_start(&spec, SETTLE_TIMEOUT_MS, &helper, err);
    if (r == 0)
        r = helper_wait(&helper, err);
    return r > 0 ? err_set(err, -EIO, "git status in the pristine tree failed") : r;
}

/* Below this the untracked cache saves less than the second that recording it takes. */
#define SETTLE_FROM_FILES 2000U

static int publish(const struct worktree_request *q, const char *state, const struct repo *repo,
        struct checkout_draft *draft, struct checkout **out, struct carrel_error *err)
{
    struct carrel_error ignored = { 0 };
    AUTO(fd_close) int index = -1;

    AUTO(fd_close) int dir = open(draft->entry.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return err_set_errno(err, -errno, "open '%s'", draft->entry.path);
    if (draft->n_files >= SETTLE_FROM_FILES && tree_kind_has_overlay(q, state, &ignored)) {
        int r = settle(q, repo, draft, dir, &ignored);
        if (r == 0) /* without it the first status is slower, nothing else */
            index = openat(dir, "space/gitupper/index", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        r = tree_remove(dir, "space", err);
        if (r < 0)
            return r;
    }
    int r = checkout_publish(state, repo, draft, index, out, err);
    return r == -EBADMSG && index >= 0 ? checkout_publish(state, repo, draft, -1, out, err) : r;
}

int prepare_is_of_run(const struct worktree_request *q, const struct repo *repo,
        const char *commit, struct carrel_error *err)
{
    if (q->options->is_dirty || q->options->is_folder) /* made of the user's files just now */
        return 0;
    int r = repo_has_commit(repo, commit, err);
    if (r == 1) /* of an unknown one the checkout says so */
        r = ref_users_have(repo, commit, err);
    else if (r == 0)
        return 0;
    return r < 0 ? err_wrap(err, r, "find out where commit %.12s comes from", commit) : r == 0;
}

static int make_checkout(const struct worktree_request *q, const char *state,
        const struct repo *repo, const char *commit, struct checkout **out,
        struct carrel_error *err)
{
    AUTO(checkout_draft_free) struct checkout_draft *draft = NULL;
    struct checkout_owner owner = { .is_of_run = false };

    runtime_identity(q->runtime, q->spec, &owner.uid, &owner.gid);
    int r = prepare_is_of_run(q, repo, commit, err);
    if (r < 0)
        return r;
    owner.is_of_run = r == 1;
    r = checkout_fill(state, repo, commit, owner, q->options->progress,
            q->options->progress_context, &draft, err);
    if (r == 0)
        r = publish(q, state, repo, draft, out, err);
    if (r == -EEXIST) /* another process was faster */
        r = checkout_find(state, repo, commit, out, err);
    return r;
}

int prepare_checkout(const struct worktree_request *q, const char *state,
        const struct repo *repo, const char *commit, struct checkout **out,
        struct carrel_error *err)
{
    int r = checkout_find(state, repo, commit, out, err);

    return r == -ENOENT ? make_checkout(q, state, repo, commit, out, err) : r;
}

int prepare_again(const struct worktree_request *q, const char *state,
        const struct workspace *ws, struct carrel_error *err)
{
    AUTO(repo_free) struct repo *repo = NULL;
    AUTO(checkout_free) struct checkout *checkout = NULL;

    int r = workspace_repo(ws, &repo, err);
    return r < 0 ? r : prepare_checkout(q, state, repo, ws->base, &checkout, err);
}

int prepare_tree(
        const struct worktree_request *q, struct worktree *worktree, struct carrel_error *err)
{
    const struct workspace *ws = worktree->ws;
    const char *top = ws->mode == WORKSPACE_COPY ? "tree" : "upper";

    if (ws->is_folder && ws->mode != WORKSPACE_OVERLAY)
        return err_set(err, -ENOTSUP, "a copy-on-write folder needs overlayfs, %s",
                q->options->tree == CARREL_TREE_COPY ? "and --tree asks for something else"
                                                     : "which does not work here");
    int r = ws->mode == WORKSPACE_OVERLAY ? 0
                                          : prepare_is_of_run(q, worktree->repo, ws->base, err);
    if (r >= 0 && ws->mode != WORKSPACE_OVERLAY)
        r = fallback_fill(worktree, r == 1, err);
    if (r == 0 && ws->is_cut && !ws->is_folder)
        r = shallow_make(worktree, err);
    if (r < 0)
        return r;
    AUTO(fd_close) int tree = openat(ws->dir, top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (tree < 0)
        return err_set_errno(err, -errno, "open '%s/%s'", ws->path, top);
    if (ws->is_folder) {
        /* The pristine tree has a .git for runs with git; here it must not be seen. */
        if (mknodat(tree, ".git", S_IFCHR, makedev(0, 0)) < 0)
            return err_set_errno(err, -errno, "hide .git in '%s/%s'", ws->path, top);
        return folder_make_empty(worktree->repo, ws->base, tree, err);
    }
    return included_files(q, worktree, tree, err);
}
