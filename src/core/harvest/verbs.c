/* verbs.c - verbs on workspaces whose run is over, or on all of them. */
#include "core/harvest/verbs.h"
#include "base/err.h"
#include "core/harvest/deliver.h"
#include "core/harvest/harvest.h"
#include "core/harvest/hold.h"
#include "core/record/recorder.h"
#include "core/record/review.h"
#include "core/state/state.h"
#include "core/worktree/target.h"
#include "core/worktree/worktree.h"
#include "git/ref.h"
#include "workspace/exported.h"
#include "workspace/renew.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

const char *workspaces_state(const struct workspace *ws)
{
    if (ws->lock < 0 && workspace_is_in_use(ws)) /* else it is this process that uses it */
        return "running";
    switch (ws->phase) {
    case WORKSPACE_CREATING:
        return "creating";
    case WORKSPACE_READY:
        return "interrupted";
    case WORKSPACE_FINISHED:
        break;
    }
    return ws->is_published ? "committed" : workspaces_is_applied(ws) ? "applied" : "kept";
}

void workspace_list_free(struct workspace_list *list)
{
    if (!list)
        return;
    for (size_t i = 0; i < list->n; i++)
        workspace_free(list->items[i]);
    free(list->items);
    free(list);
}

static int collect(struct workspace **ws, void *context)
{
    struct workspace_list *list = context;
    struct workspace **items = reallocarray(
            list->items, list->n + 1, sizeof(struct workspace *)); /* of pointers */

    if (!items)
        return -ENOMEM;
    list->items = items;
    if (workspaces_is_withdrawn(*ws))
        (*ws)->is_published = false;
    items[list->n++] = ptr_steal(ws);
    return 0;
}

static int by_age(const void *a, const void *b)
{
    const struct workspace *x = *(struct workspace *const *)a;
    const struct workspace *y = *(struct workspace *const *)b;

    if (x->created_s != y->created_s)
        return x->created_s < y->created_s ? -1 : 1;
    if (x->created_ns != y->created_ns)
        return x->created_ns < y->created_ns ? -1 : 1;
    const int by_run = strcmp(x->run, y->run);
    return by_run ? by_run : strcmp(x->task, y->task);
}

int workspaces_list(const char *repo_dir, struct workspace_list **out, struct carrel_error *err)
{
    char state[PATH_MAX];
    AUTO(repo_free) struct repo *repo = NULL;
    AUTO(workspace_list_free) struct workspace_list *list = calloc(1, sizeof(*list));

    if (!list)
        return err_set_errno(err, -ENOMEM, "workspaces");
    int r = state_path(state, sizeof(state), err);
    if (r == 0 && repo_dir)
        r = repo_open(repo_dir, &repo, err);
    if (r == 0)
        r = workspace_each(state, repo, collect, list, err);
    if (r < 0)
        return r;
    if (list->n > 1)
        qsort(list->items, list->n, sizeof(struct workspace *), by_age);
    *out = ptr_steal(&list);
    return 0;
}

/* Of several workspaces of that run, the one of the repository here. 0: there is none. */
static int find_here(const char *run, const char *repo_dir, struct workspace **out)
{
    AUTO(workspace_list_free) struct workspace_list *list = NULL;
    size_t n = 0;

    if (workspaces_list(repo_dir, &list, NULL) < 0)
        return 0;
    for (size_t i = 0; i < list->n; i++) {
        if (strcmp(list->items[i]->run, run) != 0)
            continue;
        n++;
        workspace_free(*out);
        *out = ptr_steal(&list->items[i]);
    }
    return n == 1;
}

int workspaces_resolve(const char *given, const char *repo_dir, char *name, size_t size,
        struct carrel_error *err)
{
    AUTO(workspace_free) struct workspace *ws = NULL;
    char state[PATH_MAX];

    int r = state_path(state, sizeof(state), err);
    if (r == 0)
        r = workspace_find(state, given, &ws, err);
    if (r < 0 && !(r == -EEXIST && find_here(given, repo_dir, &ws)))
        return r;
    int len = snprintf(name, size, "%s/%s", ws->task, ws->run);
    return len < 0 || (size_t)len >= size ? err_set_errno(err, -ENAMETOOLONG, "'%s'", given)
                                          : 0;
}

void workspace_report_free(struct workspace_report *report)
{
    if (!report)
        return;
    workspace_free(report->ws);
    harvest_summary_finish(&report->committed);
    harvest_summary_finish(&report->total);
    harvest_summary_finish(&report->uncommitted);
    oddities_free(report->oddities, report->n_oddities);
    free(report->opened);
    free(report);
}

int workspaces_report(const char *name, struct workspace_report **out, struct carrel_error *err)
{
    AUTO(worktree_free) struct worktree *worktree = NULL;
    AUTO(workspace_report_free)
    struct workspace_report *report = calloc(1, sizeof(*report));
    uint64_t inodes;

    if (!report)
        return err_set_errno(err, -ENOMEM, "report");
    int r = workspaces_hold_worktree(
            name, &worktree, &report->oddities, &report->n_oddities, err);
    if (r < 0)
        return r;
    const struct workspace *ws = worktree->ws;
    r = objects_dir_sum_up(worktree, ws->base, ws->tip, &report->committed, err);
    if (r == 0)
        r = objects_dir_sum_up(worktree, ws->base, ws->snapshot, &report->total, err);
    if (r == 0)
        r = objects_dir_sum_up(worktree, ws->tip, ws->snapshot, &report->uncommitted, err);
    r = workspaces_explain(worktree->repo, ws, r, err);
    report->uncommitted.n_commits = 0; /* the one between them is ours, not the run's */
    report->total.n_commits = report->committed.n_commits;
    if (r == 0)
        r = upper_usage(ws->dir, UINT64_MAX, &report->disk_bytes, &inodes, err);
    if (r < 0)
        return r;
    if (ws->is_opened && ws->opened_at)
        report->opened = strdup(ws->opened_at);
    report->ws = ptr_steal(&worktree->ws);
    *out = ptr_steal(&report);
    return 0;
}

/* Writes git's output about two commits to `fd`. */
static int show(const char *name, const char *const *args, size_t n, bool is_range,
        bool is_uncommitted, int fd, struct carrel_error *err)
{
    AUTO(worktree_free) struct worktree *worktree = NULL;
    const char *all[24];
    char range[2 * OID_MAX + 4];
    char path[PATH_MAX];
    const struct harvest_limits limits = HARVEST_LIMITS_INIT;
    struct git_io io = GIT_IO_INIT;

    int r = workspaces_hold_worktree(name, &worktree, NULL, NULL, err);
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

int workspaces_diff(
        const char *name, const struct diff_options *options, int fd, struct carrel_error *err)
{
    const char *args[] = { "-c", "core.quotePath=true", "diff-tree", "-r", "--no-ext-diff",
        "--no-textconv", "--ignore-submodules=none", "--find-renames", "--color=never",
        options->is_stat    ? "--stat"
        : options->is_names ? "--name-status"
                            : "--patch" };

    return show(name, args, ARRAY_LEN(args), false, options->is_uncommitted, fd, err);
}

int workspaces_log(const char *name, int fd, struct carrel_error *err)
{
    const char *args[] = { "log", "--no-ext-diff", "--no-textconv", "--no-show-signature",
        "--no-mailmap", "--stat", "--color=never" };

    return show(name, args, ARRAY_LEN(args), true, false, fd, err);
}

int workspaces_patch(const char *name, int fd, struct carrel_error *err)
{
    const char *args[] = { "format-patch", "--stdout", "--binary", "--no-ext-diff",
        "--no-textconv" };

    return show(name, args, ARRAY_LEN(args), true, false, fd, err);
}

int workspaces_commit(const char *name, const char *message, char commit[static OID_MAX],
        bool *has_more, struct carrel_error *err)
{
    AUTO(worktree_free) struct worktree *worktree = NULL;

    AUTO(recorder_finish) struct recorder recorder = { 0 };

    int r = workspaces_hold_worktree(name, &worktree, NULL, NULL, err);
    if (r == 0)
        r = review_begin(worktree->ws, "commit_asked", &recorder, err);
    if (r == 0)
        r = workspaces_explain(worktree->repo, worktree->ws,
                deliver_commit(worktree, message, recorder.seal, commit, err), err);
    if (r < 0)
        return r;
    *has_more = strcmp(worktree->ws->snapshot, worktree->ws->tip) != 0;
    return review_end(worktree->ws, "workspace_committed", &recorder, err);
}

int workspaces_apply(const char *name, enum apply_how how, const char *repo_dir,
        const char *here, struct apply_outcome *out, struct carrel_error *err)
{
    AUTO(worktree_free) struct worktree *worktree = NULL;

    static const char *const events[] = {
        [APPLY_FILES] = "workspace_applied",
        [APPLY_MERGE] = "workspace_merged",
        [APPLY_SQUASH] = "workspace_squashed",
        [APPLY_CHERRY_PICK] = "workspace_cherry_picked",
    };
    AUTO(recorder_finish) struct recorder recorder = { 0 };

    int r = workspaces_hold_worktree(name, &worktree, NULL, NULL, err);
    if (r == 0)
        r = target_choose(worktree, repo_dir, here, err);
    if (r == 0)
        r = review_begin(worktree->ws, "apply_asked", &recorder, err);
    if (r == 0)
        r = workspaces_explain(worktree->repo, worktree->ws,
                deliver_apply(worktree, how, recorder.seal, out, err), err);
    if (r == 0 && worktree->ws->is_folder) { /* that of a hidden repository */
        free(out->branch);
        out->branch = NULL;
    }
    if (r < 0 || out->n_conflicts > 0)
        return r;
    return review_end(worktree->ws, events[how], &recorder, err);
}

int workspaces_open(
        const char *name, const char *at, char *path, size_t size, struct carrel_error *err)
{
    AUTO(worktree_free) struct worktree *worktree = NULL;

    int r = workspaces_hold_worktree(name, &worktree, NULL, NULL, err);
    if (r < 0)
        return r;
    if (worktree->ws->is_folder)
        return err_set(err, -ENOTSUP, "a folder without git cannot be opened; apply it");
    if (strcmp(worktree->ws->snapshot, worktree->ws->base) != 0) {
        AUTO(recorder_finish) struct recorder recorder = { 0 };
        char commit[OID_MAX];
        r = review_begin(worktree->ws, "commit_asked", &recorder, err);
        if (r == 0)
            r = workspaces_explain(worktree->repo, worktree->ws,
                    deliver_commit(worktree, NULL, recorder.seal, commit, err), err);
        if (r == 0)
            r = review_end(worktree->ws, "workspace_committed", &recorder, err);
    }
    if (r == 0)
        r = workspaces_explain(worktree->repo, worktree->ws,
                opened_open(worktree->ws, worktree->repo, at, path, size, err), err);
    return r;
}

int workspaces_close(const char *name, struct carrel_error *err)
{
    AUTO(workspace_free) struct workspace *ws = NULL;
    AUTO(repo_free) struct repo *repo = NULL;

    int r = workspaces_hold(name, &ws, err);
    if (r == 0 && !ws->is_opened)
        return err_set(err, -EINVAL, "workspace '%s' is not open", ws->run);
    if (r == 0)
        r = workspace_repo(ws, &repo, err);
    return r < 0 ? r : opened_close(ws, repo, err);
}

int workspaces_move(const char *name, const char *to, struct carrel_error *err)
{
    char path[PATH_MAX];
    int r = workspaces_close(name, err);

    return r < 0 ? r : workspaces_open(name, to, path, sizeof(path), err);
}

static int set_lock(
        const char *name, bool is_locked, const char *reason, struct carrel_error *err)
{
    AUTO(workspace_free) struct workspace *ws = NULL;

    int r = workspaces_hold(name, &ws, err);
    if (r < 0)
        return r;
    if (reason || !is_locked || !ws->is_user_locked) /* locked once more: the reason stays */
        (void)snprintf(ws->note, sizeof(ws->note), "%s", reason ? reason : "");
    ws->is_user_locked = is_locked;
    return workspace_save(ws, err);
}

int workspaces_lock(const char *name, const char *reason, struct carrel_error *err)
{
    return set_lock(name, true, reason, err);
}

int workspaces_unlock(const char *name, struct carrel_error *err)
{
    return set_lock(name, false, NULL, err);
}

int workspaces_repair(const char *name, struct carrel_error *err)
{
    AUTO(workspace_free) struct workspace *ws = NULL;
    AUTO(repo_free) struct repo *repo = NULL;
    char branch[WORKSPACE_REF_MAX];
    char at[OID_MAX];
    int mended = 0;

    int r = workspaces_hold(name, &ws, err);
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
