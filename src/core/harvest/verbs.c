/* verbs.c - verbs on a workspace whose run is over; those that remove it are in drop.c. */
#include "base/err.h"
#include "base/options.h"
#include "core/harvest/deliver.h"
#include "core/harvest/find.h"
#include "core/harvest/harvest.h"
#include "core/harvest/hold.h"
#include "core/record/recorder.h"
#include "core/record/review.h"
#include "core/worktree/worktree.h"
#include "git/ref.h"
#include "workspace/exported.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>

/* Writes git's output about two commits to `fd`. */
static int show(const struct carrel_workspace *workspace, const char *const *args, size_t n,
        bool is_range, bool is_uncommitted, int fd, struct carrel_error *err)
{
    AUTO(worktree_free) struct worktree *worktree = NULL;
    const char *all[24];
    char range[2 * OID_MAX + 4];
    char path[PATH_MAX];
    const struct harvest_limits limits = HARVEST_LIMITS_INIT;
    struct git_io io = GIT_IO_INIT;

    int r = workspaces_hold_worktree(workspace->name, &worktree, NULL, NULL, err);
    if (r < 0)
        return r;
    const struct workspace *ws = worktree->ws;
    const char *from = is_uncommitted ? ws->tip : ws->base;
    r = objects_dir_path(worktree, path, err);
    if (r < 0)
        return r;
    memcpy(all, args, n * sizeof(*args));
    (void)snprintf(range, sizeof(range), "%s..%s", from, ws->snapshot);
    if (is_range) {
        all[n++] = range;
    } else {
        all[n++] = from;
        all[n++] = ws->snapshot;
    }
    all[n++] = "--";
    all[n] = NULL;
    struct git git = harvest_git(worktree->repo, path);
    io.output_fd = fd;
    io.max_memory_bytes = limits.max_memory_bytes; /* the run chose what is compared */
    return workspaces_explain(worktree->repo, ws, git_expect(&git, all, &io, err), err);
}

int carrel_workspace_diff(const struct carrel_workspace *workspace,
        const struct carrel_diff_options *options, int fd, struct carrel_error *err)
{
    struct carrel_diff_options own = CARREL_DIFF_OPTIONS_INIT;
    static const char forms[][16] = {
        [CARREL_DIFF_PATCH] = "--patch",
        [CARREL_DIFF_STAT] = "--stat",
        [CARREL_DIFF_NAMES] = "--name-status",
    };

    err = ERR_OR_IGNORED(err);
    int r = OPTIONS_TAKE(&own, options, CARREL_DIFF_OPTIONS_INIT, err);
    if (r < 0)
        return r;
    if (own.form >= ARRAY_LEN(forms))
        return err_set(err, -EINVAL, "there is no form %u of a diff", (unsigned)own.form);
    const char *args[] = { "-c", "core.quotePath=true", "diff-tree", "-r", "--no-ext-diff",
        "--no-textconv", "--ignore-submodules=none", "--find-renames", "--color=never",
        forms[own.form] };
    return show(workspace, args, ARRAY_LEN(args), false, own.is_uncommitted, fd, err);
}

int carrel_workspace_log(
        const struct carrel_workspace *workspace, int fd, struct carrel_error *err)
{
    const char *args[] = { "log", "--no-ext-diff", "--no-textconv", "--no-show-signature",
        "--no-mailmap", "--stat", "--color=never" };

    return show(workspace, args, ARRAY_LEN(args), true, false, fd, ERR_OR_IGNORED(err));
}

int carrel_workspace_patch(
        const struct carrel_workspace *workspace, int fd, struct carrel_error *err)
{
    const char *args[] = { "format-patch", "--stdout", "--binary", "--no-ext-diff",
        "--no-textconv" };

    return show(workspace, args, ARRAY_LEN(args), true, false, fd, ERR_OR_IGNORED(err));
}

/* The work of a workspace that is held, on its branch, with a record before and after. */
static int commit_held(struct worktree *worktree, const char *message,
        char commit[static OID_MAX], struct carrel_error *err)
{
    AUTO(recorder_finish) struct recorder recorder = { 0 };

    int r = review_begin(worktree->ws, "commit_asked", &recorder, err);
    if (r == 0)
        r = workspaces_explain(worktree->repo, worktree->ws,
                deliver_commit(worktree, message, recorder.seal, commit, err), err);
    return r < 0 ? r : review_end(worktree->ws, "workspace_committed", &recorder, err);
}

/* Text for the caller of the library, if it is wanted. */
static int give(const char *text, char **out, struct carrel_error *err)
{
    char *copy = out ? strdup(text) : NULL;

    if (!out)
        return 0;
    if (!copy)
        return err_set_errno(err, -ENOMEM, "result");
    *out = copy;
    return 0;
}

int carrel_workspace_commit(const struct carrel_workspace *workspace, const char *message,
        char **commit, struct carrel_error *err)
{
    AUTO(worktree_free) struct worktree *worktree = NULL;
    char id[OID_MAX];

    err = ERR_OR_IGNORED(err);
    int r = workspaces_hold_worktree(workspace->name, &worktree, NULL, NULL, err);
    if (r == 0)
        r = commit_held(worktree, message, id, err);
    if (r == 0)
        r = give(id, commit, err);
    return r < 0 ? r : strcmp(worktree->ws->snapshot, worktree->ws->tip) != 0;
}

int carrel_workspace_open(const struct carrel_workspace *workspace, const char *at, char **path,
        struct carrel_error *err)
{
    AUTO(worktree_free) struct worktree *worktree = NULL;
    char commit[OID_MAX];
    char dir[PATH_MAX];

    err = ERR_OR_IGNORED(err);
    if (at && at[0] != '/')
        return err_set(err, -EINVAL, "'%s' is not an absolute path", at);
    int r = workspaces_hold_worktree(workspace->name, &worktree, NULL, NULL, err);
    if (r < 0)
        return r;
    if (worktree->ws->is_folder)
        return err_set(err, -ENOTSUP, "a folder without git cannot be opened; apply it");
    if (strcmp(worktree->ws->snapshot, worktree->ws->base) != 0)
        r = commit_held(worktree, NULL, commit, err);
    if (r == 0)
        r = workspaces_explain(worktree->repo, worktree->ws,
                opened_open(worktree->ws, worktree->repo, at, dir, sizeof(dir), err), err);
    return r < 0 ? r : give(dir, path, err);
}

int carrel_workspace_close(const struct carrel_workspace *workspace, struct carrel_error *err)
{
    AUTO(workspace_free) struct workspace *ws = NULL;
    AUTO(repo_free) struct repo *repo = NULL;

    err = ERR_OR_IGNORED(err);
    int r = workspaces_hold(workspace->name, &ws, err);
    if (r == 0 && !ws->is_opened)
        return err_set(err, -EINVAL, "workspace '%s' is not open", ws->run);
    if (r == 0)
        r = workspace_repo(ws, &repo, err);
    return r < 0 ? r : opened_close(ws, repo, err);
}

int carrel_workspace_move(
        const struct carrel_workspace *workspace, const char *to, struct carrel_error *err)
{
    err = ERR_OR_IGNORED(err);
    if (to[0] != '/') /* before the directory is removed from where it is */
        return err_set(err, -EINVAL, "'%s' is not an absolute path", to);
    int r = carrel_workspace_close(workspace, err);
    return r < 0 ? r : carrel_workspace_open(workspace, to, NULL, err);
}

static int set_lock(const struct carrel_workspace *workspace, bool is_locked,
        const char *reason, struct carrel_error *err)
{
    AUTO(workspace_free) struct workspace *ws = NULL;

    err = ERR_OR_IGNORED(err);
    int r = workspaces_hold(workspace->name, &ws, err);
    if (r < 0)
        return r;
    if (reason || !is_locked || !ws->is_user_locked) /* locked once more: the reason stays */
        (void)snprintf(ws->note, sizeof(ws->note), "%s", reason ? reason : "");
    ws->is_user_locked = is_locked;
    return workspace_save(ws, err);
}

int carrel_workspace_lock(
        const struct carrel_workspace *workspace, const char *reason, struct carrel_error *err)
{
    return set_lock(workspace, true, reason, err);
}

int carrel_workspace_unlock(const struct carrel_workspace *workspace, struct carrel_error *err)
{
    return set_lock(workspace, false, NULL, err);
}

int carrel_workspace_repair(const struct carrel_workspace *workspace, struct carrel_error *err)
{
    AUTO(workspace_free) struct workspace *ws = NULL;
    AUTO(repo_free) struct repo *repo = NULL;
    char branch[WORKSPACE_REF_MAX];
    char at[OID_MAX];
    int mended = 0;

    err = ERR_OR_IGNORED(err);
    int r = workspaces_hold(workspace->name, &ws, err);
    if (r == 0)
        r = workspace_repo(ws, &repo, err);
    if (r < 0 || ws->is_folder)
        return r;
    workspace_branch_ref(ws, branch);
    r = ws->branch_at[0] ? ref_read(repo, branch, at, err) : 0;
    if (r == -ENOENT && repo_has_commit(repo, ws->branch_at, NULL) > 0) {
        r = ref_create(repo, branch, ws->branch_at, "carrel: repair", err);
        mended++;
    } else if (r == -ENOENT) { /* git gc removed it: a commit creates the branch again */
        r = workspaces_explain(repo, ws, r, err);
        if (r != -ENOENT)
            return r;
        ws->is_published = false;
        ws->branch_at[0] = ws->branch_to[0] = '\0';
        r = workspace_save(ws, err);
        mended++;
    }
    if (r == 0)
        r = opened_repair(ws, repo, err);
    return r < 0 ? r : mended + r;
}
