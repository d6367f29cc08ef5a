/* report.c - what a run changed, as the library shows it. */
#include "base/err.h"
#include "base/fd.h"
#include "core/harvest/find.h"
#include "core/harvest/harvest.h"
#include "core/harvest/hold.h"
#include "core/worktree/worktree.h"
#include <errno.h>

enum part { PART_TOTAL, PART_COMMITTED, PART_UNCOMMITTED, PARTS };

/* The changes between two commits; the view points to the summary. */
struct part_view {
    struct harvest_summary summary;
    struct carrel_workspace_file *files;
    const struct carrel_workspace_file **list;
    struct carrel_workspace_changes changes;
};

/* What the caller sees, and what it points to. */
struct report_view {
    struct carrel_workspace_report public;
    struct carrel_workspace workspace;
    struct part_view parts[PARTS];
    struct oddity *own_oddities;
    size_t n_oddities;
    struct carrel_workspace_oddity *oddities;
    const struct carrel_workspace_oddity **list;
};

void carrel_workspace_report_free(struct carrel_workspace_report *report)
{
    if (!report)
        return;
    struct report_view *view = container_of(report, struct report_view, public);
    workspace_free(view->workspace.ws);
    for (size_t i = 0; i < PARTS; i++) {
        harvest_summary_finish(&view->parts[i].summary);
        free(view->parts[i].files);
        free(view->parts[i].list);
    }
    oddities_free(view->own_oddities, view->n_oddities);
    free(view->oddities);
    free(view->list);
    free(view);
}

static void report_view_free(struct report_view *view)
{
    carrel_workspace_report_free(view ? &view->public : NULL);
}
DEFINE_AUTO(struct report_view *, report_view_free)

static int fill_part(struct part_view *part, struct carrel_error *err)
{
    const struct harvest_summary *summary = &part->summary;

    part->files = calloc(summary->n_files + 1, sizeof(*part->files));
    part->list = calloc(summary->n_files + 1, sizeof(struct carrel_workspace_file *));
    if (!part->files || !part->list)
        return err_set_errno(err, -ENOMEM, "report");
    for (size_t i = 0; i < summary->n_files; i++) {
        const struct harvest_file *file = &summary->files[i];
        part->files[i] = (struct carrel_workspace_file){
            .size = sizeof(part->files[i]),
            .path = file->path,
            .status = file->status,
            .is_binary = file->is_binary,
            .added = file->added,
            .removed = file->removed,
            .sensitive = file->sensitive,
        };
        part->list[i] = &part->files[i];
    }
    part->changes = (struct carrel_workspace_changes){
        .size = sizeof(part->changes),
        .files = part->list,
        .n_files = summary->n_files,
        .n_sensitive = summary->n_sensitive,
        .added = summary->added,
        .removed = summary->removed,
        .n_commits = summary->n_commits,
        .is_rewritten = summary->is_rewritten,
    };
    return 0;
}

static int fill_oddities(struct report_view *view, struct carrel_error *err)
{
    view->oddities = calloc(view->n_oddities + 1, sizeof(*view->oddities));
    view->list = calloc(view->n_oddities + 1, sizeof(struct carrel_workspace_oddity *));
    if (!view->oddities || !view->list)
        return err_set_errno(err, -ENOMEM, "report");
    for (size_t i = 0; i < view->n_oddities; i++) {
        view->oddities[i] = (struct carrel_workspace_oddity){
            .size = sizeof(view->oddities[i]),
            .path = view->own_oddities[i].path,
            .why = oddity_text(view->own_oddities[i].kind),
        };
        view->list[i] = &view->oddities[i];
    }
    return 0;
}

static int fill(struct report_view *view, struct carrel_error *err)
{
    struct part_view *parts = view->parts;
    int r = fill_oddities(view, err);

    for (size_t i = 0; r == 0 && i < PARTS; i++)
        r = fill_part(&parts[i], err);
    view->public.size = sizeof(view->public);
    view->public.info = &view->workspace.info;
    view->public.total = &parts[PART_TOTAL].changes;
    view->public.committed = &parts[PART_COMMITTED].changes;
    view->public.uncommitted = &parts[PART_UNCOMMITTED].changes;
    view->public.oddities = view->list;
    view->public.n_oddities = view->n_oddities;
    return r;
}

static int sum_up(
        const struct worktree *worktree, struct report_view *view, struct carrel_error *err)
{
    const struct workspace *ws = worktree->ws;
    struct harvest_summary *total = &view->parts[PART_TOTAL].summary;
    struct harvest_summary *committed = &view->parts[PART_COMMITTED].summary;
    struct harvest_summary *uncommitted = &view->parts[PART_UNCOMMITTED].summary;
    uint64_t inodes;

    int r = objects_dir_sum_up(worktree, ws->base, ws->tip, committed, err);
    if (r == 0)
        r = objects_dir_sum_up(worktree, ws->base, ws->snapshot, total, err);
    if (r == 0)
        r = objects_dir_sum_up(worktree, ws->tip, ws->snapshot, uncommitted, err);
    r = workspaces_explain(worktree->repo, ws, r, err);
    uncommitted->n_commits = 0; /* the one between them is ours, not the run's */
    total->n_commits = committed->n_commits;
    return r < 0 ? r : upper_usage(ws->dir, UINT64_MAX, &view->public.disk_bytes, &inodes, err);
}

int carrel_workspace_report(const struct carrel_workspace *workspace,
        struct carrel_workspace_report **out, struct carrel_error *err)
{
    AUTO(worktree_free) struct worktree *worktree = NULL;
    AUTO(report_view_free) struct report_view *view = calloc(1, sizeof(*view));

    err = ERR_OR_IGNORED(err);
    if (!view)
        return err_set_errno(err, -ENOMEM, "report");
    int r = workspaces_hold_worktree(
            workspace->name, &worktree, &view->own_oddities, &view->n_oddities, err);
    if (r == 0)
        r = sum_up(worktree, view, err);
    if (r < 0)
        return r;
    view->workspace.ws = ptr_steal(&worktree->ws);
    workspaces_view(view->workspace.ws, view->workspace.name, &view->workspace.info);
    fd_close(view->workspace.ws->lock); /* a report that is kept does not block others */
    view->workspace.ws->lock = -1;
    r = fill(view, err);
    if (r < 0)
        return r;
    *out = &ptr_steal(&view)->public;
    return 0;
}
