/* cleanup.c - sweeping every runtime. */
#include "core/host/cleanup.h"
#include "base/dir.h"
#include "base/fd.h"
#include "core/state/state.h"
#include "core/worktree/sweep_layers.h"
#include "image/image.h"
#include "registry/registry.h"
#include "runtime/runtime.h"
#include "workspace/apply/apply.h"
#include "workspace/apply/swap.h"
#include "workspace/cache/checkout.h"
#include "workspace/cache/expiry.h"
#include "workspace/renew.h"
#include "workspace/workspace.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CACHE_MAX_AGE_S (30U * 24 * 60 * 60)
#define CHECKOUT_MAX_BYTES (UINT64_C(32) << 30)

void cleanup_finish(struct cleanup cleanup)
{
    for (size_t i = 0; i < cleanup.n_mended; i++)
        free(cleanup.mended[i].top);
    free(cleanup.mended);
}

/* An apply that was killed is undone or finished. */
static int put_right(struct cleanup *cleanup, const struct repo *repo, bool is_folder)
{
    if (apply_recover(repo, NULL) <= 0) /* the next apply tries again, and says why */
        return 0;
    struct cleanup_mended *mended =
            reallocarray(cleanup->mended, cleanup->n_mended + 1, sizeof(*mended));
    if (!mended)
        return -ENOMEM;
    cleanup->mended = mended;
    mended += cleanup->n_mended;
    mended->is_folder = is_folder;
    mended->top = strdup(repo->top); /* an apply needs a work tree */
    if (!mended->top)
        return -ENOMEM;
    cleanup->n_mended++;
    return 0;
}

static int put_right_at(struct cleanup *cleanup, const struct repo *repo, char *git_file)
{
    AUTO(repo_free) struct repo *other = NULL;
    char *slash = strrchr(git_file, '/');

    if (!slash || strcmp(slash, "/.git") != 0)
        return 0;
    *slash = '\0';
    if (repo_open(git_file, &other, NULL) < 0 ||
            strcmp(other->common_dir, repo->common_dir) != 0)
        return 0;
    return put_right(cleanup, other, false);
}

/* An apply may have been for any work tree of the repository: see target_choose(). */
static int put_right_others(struct cleanup *cleanup, const struct repo *repo)
{
    char path[PATH_MAX];
    char git_file[PATH_MAX];
    int r = 0;

    (void)snprintf(git_file, sizeof(git_file), "%s", repo->common_dir);
    r = put_right_at(cleanup, repo, git_file);
    if ((size_t)snprintf(path, sizeof(path), "%s/worktrees", repo->common_dir) >= sizeof(path))
        return r;
    AUTO(dir_close) DIR *dir = dir_open(AT_FDCWD, path);
    for (const char *name; r == 0 && (name = dir_next(dir));) {
        (void)snprintf(path, sizeof(path), "%s/" SWAP_DIR, name);
        if (faccessat(dirfd(dir), path, F_OK, 0) < 0)
            continue; /* no apply was interrupted there */
        (void)snprintf(path, sizeof(path), "%s/gitdir", name);
        if (fd_read_file(dirfd(dir), path, git_file, sizeof(git_file)) <= 0)
            continue;
        git_file[strcspn(git_file, "\n")] = '\0';
        r = put_right_at(cleanup, repo, git_file);
    }
    return r;
}

struct mending {
    struct cleanup *cleanup;
    char last[PATH_MAX]; /* the last repository: many workspaces share one */
};

static int mend(struct workspace **ws, void *context)
{
    struct mending *mending = context;
    AUTO(repo_free) struct repo *repo = NULL;

    if (workspace_repo(*ws, &repo, NULL) < 0)
        return 0;
    int r = put_right(mending->cleanup, repo, (*ws)->is_folder);
    if (r < 0 || (*ws)->is_folder || strcmp(repo->common_dir, mending->last) == 0)
        return r;
    (void)snprintf(mending->last, sizeof(mending->last), "%s", repo->common_dir);
    return put_right_others(mending->cleanup, repo);
}

static int sweep_workspaces(struct cleanup *cleanup, struct carrel_error *err)
{
    struct mending mending = { .cleanup = cleanup };
    char state[PATH_MAX];

    if (state_path(state, sizeof(state), NULL) < 0 || access(state, F_OK) < 0)
        return 0; /* nothing was ever made */
    int r = workspace_each(state, NULL, mend, &mending, err);
    if (r == 0)
        r = workspace_sweep(state, err);
    if (r < 0)
        return r;
    cleanup->workspaces = (unsigned)r;
    r = checkout_sweep(state, CACHE_MAX_AGE_S, CHECKOUT_MAX_BYTES, err);
    if (r < 0)
        return r;
    cleanup->checkouts = (unsigned)r;
    r = image_sweep(state, err);
    if (r < 0)
        return r;
    cleanup->layers = (unsigned)r;
    r = sweep_layers(state, err);
    if (r < 0)
        return r;
    cleanup->layers += (unsigned)r;
    r = expiry_sweep(state, CACHE_MAX_AGE_S, err);
    if (r < 0)
        return r;
    cleanup->caches = (unsigned)r;
    return 0;
}

static int sweep_registry(struct cleanup *cleanup, struct carrel_error *err)
{
    AUTO(registry_close) struct registry reg = REGISTRY_NONE;

    int r = registry_open(&reg, err);
    if (r == 0)
        r = registry_sweep(&reg, err);
    cleanup->entries = r < 0 ? 0 : (unsigned)r;
    return r < 0 ? r : 0;
}

int cleanup_run(struct cleanup *cleanup, struct carrel_error *err)
{
    struct runtime *runtime;
    int first;

    *cleanup = (struct cleanup){ 0 };
    first = sweep_registry(cleanup, err);
    for (size_t i = 0; (runtime = runtime_at(i)); i++) {
        struct cleanup_row row = { .runtime = runtime_name(runtime) };
        int r = runtime_sweep(runtime, &row.error);
        if (r == -ENOTSUP)
            continue; /* one that leaves nothing */
        if (r < 0 && first == 0) {
            first = r;
            *err = row.error;
        }
        row.sandboxes = r < 0 ? 0 : (unsigned)r;
        cleanup->sandboxes += row.sandboxes;
        assert(cleanup->n_rows < CLEANUP_MAX_ROWS);
        cleanup->rows[cleanup->n_rows++] = row;
    }
    int r = sweep_workspaces(cleanup, first < 0 ? NULL : err);
    return first < 0 ? first : r;
}
