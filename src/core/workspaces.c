/* workspaces.c - verbs on workspaces whose run is over, or on all of them. */
#include "core/workspaces.h"
#include "base/err.h"
#include "base/fd.h"
#include "core/afterwards.h"
#include "core/evidence.h"
#include "core/fuse.h"
#include "core/land.h"
#include "core/living_list.h"
#include "core/picture.h"
#include "core/quarantine.h"
#include "core/restack.h"
#include "core/state.h"
#include "core/target.h"
#include "core/workplace.h"
#include "workspace/admin.h"
#include "workspace/opened.h"
#include "workspace/ref.h"
#include "workspace/renew.h"
#include "workspace/upper.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#define LATER_DISK (UINT64_C(1) << 30)

/* As it is now, all of it is in the user's files; or was, when they said apply. */
static bool is_applied(const struct workspace *ws)
{
    return ws->applied[0] && strcmp(ws->applied, ws->snapshot) == 0;
}

const char *workspaces_state(const struct workspace *ws)
{
    if (ws->lock < 0 && workspace_is_in_use(ws)) /* else it is we who look at it */
        return "running";
    switch (ws->phase) {
    case WORKSPACE_CREATING:
        return "creating";
    case WORKSPACE_READY:
        return "interrupted";
    case WORKSPACE_FINISHED:
        break;
    }
    return ws->is_published ? "committed" : is_applied(ws) ? "applied" : "kept";
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

/* The user may have deleted or reset the branch since: what no ref leads to is soon gone. */
static bool is_withdrawn(const struct workspace *ws)
{
    AUTO(repo_free) struct repo *repo = NULL;
    char branch[NAME_BRANCH_MAX + 16];
    char at[OID_MAX];

    if (!ws->is_published)
        return false;
    if (workspace_repo(ws, &repo, NULL) < 0)
        return true;
    (void)snprintf(branch, sizeof(branch), "refs/heads/%s", ws->branch);
    return (ref_read(repo, branch, at, NULL) < 0 || strcmp(at, ws->snapshot) != 0) &&
           !ref_others_have(repo, "", ws->snapshot);
}

static int collect(struct workspace **ws, void *context)
{
    struct workspace_list *list = context;
    struct workspace **items = reallocarray(
            list->items, list->n + 1, sizeof(struct workspace *)); /* of pointers */

    if (!items)
        return -ENOMEM;
    list->items = items;
    if (is_withdrawn(*ws))
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

/* The one of several with that run that is of the repository here. 0: there is none. */
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

/* The workspace, held by us. */
static int hold(const char *name, struct workspace **out, struct carrel_error *err)
{
    char state[PATH_MAX];
    AUTO(workspace_free) struct workspace *ws = NULL;

    int r = state_path(state, sizeof(state), err);
    if (r == 0)
        r = workspace_find(state, name, &ws, err);
    if (r == 0)
        r = workspace_take_lock(ws, err);
    if (r == 0 && ws->mode == WORKSPACE_FUSE)
        r = fuse_unmount(ws, err); /* of a process that was killed */
    if (r < 0)
        return r;
    *out = ptr_steal(&ws);
    return 0;
}

/*
 * What a failure means. The branch keeps the commit that the run began with; without it, a gc
 * takes that where nothing else has it, and no git can say what the run changed.
 */
static int explain(
        const struct repo *repo, const struct workspace *ws, int code, struct carrel_error *err)
{
    if (code >= 0 || ws->is_folder || repo_has_commit(repo, ws->base, NULL) != 0)
        return code;
    return err_set(err, -ESTALE,
            "commit %.12s, which run '%s' began with, is not in '%s' any more: its branch was "
            "deleted, and git gc took it; fetch it from where it still is, or take the changed "
            "files from '%s/upper'",
            ws->base, ws->run, repo->top ? repo->top : repo->git_dir, ws->path);
}

/* Nobody knows the limits of the run any more; git in a sandbox gets some room all the same. */
static int look_later(struct workplace *place, struct runtime *runtime, struct picture *out,
        struct carrel_error *err)
{
    struct picture_bounds bounds = { .max_bytes = UINT64_MAX };
    uint64_t inodes;

    int r = upper_usage(place->ws->dir, UINT64_MAX, &bounds.disk_bytes, &inodes, err);
    bounds.disk_bytes += LATER_DISK;
    if (r < 0)
        return r;
    r = picture_take(place, runtime, &bounds, out, err);
    if (r < 0)
        (void)picture_wrap(place->ws, r, err);
    return explain(place->repo, place->ws, r, err);
}

/* That, with its repository and tree; and a picture, when its run was killed before one. */
static int hold_place(const char *name, struct workplace **out, struct oddity **oddities,
        size_t *n_oddities, struct carrel_error *err)
{
    AUTO(workspace_free) struct workspace *ws = NULL;
    AUTO(workplace_free) struct workplace *place = NULL;
    struct picture picture = { 0 };
    struct runtime *runtime;

    int r = hold(name, &ws, err);
    if (r == 0 && ws->phase == WORKSPACE_CREATING)
        return err_set(err, -ENOENT,
                "workspace '%s' was never finished; carrel cleanup removes it", name);
    if (r == 0 && is_withdrawn(ws)) {
        ws->is_published = false;
        ws->phase = WORKSPACE_READY; /* its files have it still: taken anew */
    }
    if (r == 0)
        r = workplace_reopen(ptr_steal(&ws), &place, err);
    if (r == 0)
        r = runtime_find("local", &runtime, err);
    const bool is_whole = r == 0 && !place->ws->is_opened && !place->ws->is_ahead;
    if (is_whole && oddities && place->ws->phase == WORKSPACE_FINISHED)
        r = picture_oddities(place, &picture, err);
    if (is_whole && place->ws->phase != WORKSPACE_FINISHED) {
        r = workspace_renew(place->ws, err);
        if (r == 0)
            r = look_later(place, runtime, &picture, err);
        if (r == 0)
            r = workspace_end_use(place->ws, false, err);
        if (r == 0)
            land_recognise(place);
    }
    if (r == 0 && oddities) {
        *oddities = ptr_steal(&picture.oddities);
        *n_oddities = picture.n_oddities;
        picture.n_oddities = 0;
    }
    picture_finish(&picture);
    if (r < 0)
        return r;
    *out = ptr_steal(&place);
    return 0;
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
    AUTO(workplace_free) struct workplace *place = NULL;
    AUTO(workspace_report_free)
    struct workspace_report *report = calloc(1, sizeof(*report));
    uint64_t inodes;

    if (!report)
        return err_set_errno(err, -ENOMEM, "report");
    int r = hold_place(name, &place, &report->oddities, &report->n_oddities, err);
    if (r < 0)
        return r;
    const struct workspace *ws = place->ws;
    r = quarantine_sum_up(place, ws->base, ws->tip, &report->committed, err);
    if (r == 0)
        r = quarantine_sum_up(place, ws->base, ws->snapshot, &report->total, err);
    if (r == 0)
        r = quarantine_sum_up(place, ws->tip, ws->snapshot, &report->uncommitted, err);
    r = explain(place->repo, ws, r, err);
    report->uncommitted.n_commits = 0; /* the one between them is ours, not the run's */
    report->total.n_commits = report->committed.n_commits;
    if (r == 0)
        r = upper_usage(ws->dir, UINT64_MAX, &report->disk_bytes, &inodes, err);
    if (r < 0)
        return r;
    char opened[PATH_MAX]; /* what is not known is not told; the rest is */
    if (ws->is_opened && opened_find(ws, place->repo, opened, sizeof(opened), NULL) == 0)
        report->opened = strdup(opened);
    report->ws = ptr_steal(&place->ws);
    *out = ptr_steal(&report);
    return 0;
}

/* Git's own words about two commits, on `fd`. */
static int show(const char *name, const char *const *args, size_t n, bool is_range,
        bool is_uncommitted, int fd, struct carrel_error *err)
{
    AUTO(workplace_free) struct workplace *place = NULL;
    const char *all[24];
    char range[2 * OID_MAX + 4];
    char path[PATH_MAX];
    const struct harvest_limits limits = HARVEST_LIMITS_INIT;
    struct git_io io = GIT_IO_INIT;

    int r = hold_place(name, &place, NULL, NULL, err);
    if (r < 0)
        return r;
    const struct workspace *ws = place->ws;
    const char *from = is_uncommitted ? ws->tip : ws->base;
    r = quarantine_path(place, path, err);
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
    struct git git = harvest_git(place->repo, path);
    io.output_fd = fd;
    io.max_memory_bytes = limits.max_memory_bytes; /* the run chose what is compared */
    return explain(place->repo, ws, git_expect(&git, all, &io, err), err);
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
    AUTO(workplace_free) struct workplace *place = NULL;

    AUTO(evidence_finish) struct evidence evidence = { 0 };

    int r = hold_place(name, &place, NULL, NULL, err);
    if (r == 0)
        r = afterwards_begin(place->ws, "commit_asked", &evidence, err);
    if (r == 0)
        r = explain(place->repo, place->ws,
                land_commit(place, message, evidence.seal, commit, err), err);
    if (r < 0)
        return r;
    *has_more = strcmp(place->ws->snapshot, place->ws->tip) != 0;
    return afterwards_end(place->ws, "workspace_committed", &evidence, err);
}

int workspaces_apply(const char *name, enum apply_how how, const char *repo_dir,
        const char *here, struct apply_outcome *out, struct carrel_error *err)
{
    AUTO(workplace_free) struct workplace *place = NULL;

    static const char *const events[] = {
        [APPLY_FILES] = "workspace_applied",
        [APPLY_MERGE] = "workspace_merged",
        [APPLY_SQUASH] = "workspace_squashed",
        [APPLY_CHERRY_PICK] = "workspace_cherry_picked",
    };
    AUTO(evidence_finish) struct evidence evidence = { 0 };

    int r = hold_place(name, &place, NULL, NULL, err);
    if (r == 0)
        r = target_choose(place, repo_dir, here, err);
    if (r == 0)
        r = afterwards_begin(place->ws, "apply_asked", &evidence, err);
    if (r == 0)
        r = explain(
                place->repo, place->ws, land_apply(place, how, evidence.seal, out, err), err);
    if (r == 0 && place->ws->is_folder) { /* that of a repository that nobody sees */
        free(out->branch);
        out->branch = NULL;
    }
    if (r < 0 || out->n_conflicts > 0)
        return r;
    return afterwards_end(place->ws, events[how], &evidence, err);
}

/*
 * True when everything the run made is on its branch, or it made nothing. Files that it was
 * applied to are enough for who discards it by name; a prune of many asks nobody, and files
 * that are not committed are soon reset.
 */
static bool is_safe_to_drop(const struct workspace *ws)
{
    return ws->n_aside == 0 && (ws->is_published || strcmp(ws->snapshot, ws->base) == 0);
}

static int check_drop(const struct workspace *ws, struct carrel_error *err)
{
    if (!ws->is_published && !is_applied(ws) && strcmp(ws->snapshot, ws->base) != 0)
        return err_set(err, -ENOTEMPTY,
                "run '%s' has work that is nowhere else; commit or apply it, or discard it "
                "with --force",
                ws->run);
    if (ws->n_aside > 0)
        return err_set(err, -ENOTEMPTY,
                "run '%s' has %" PRIu64 " commit%s on other branches or in its stash, and "
                "nowhere else; merge what is wanted into its branch (carrel workspace shell "
                "%s), or discard it all with --force",
                ws->run, ws->n_aside, ws->n_aside == 1 ? "" : "s", ws->run);
    return 0;
}

/*
 * The record comes first, so that nobody finds it gone without a word; but where there is no
 * room for one, this is what makes room. `place` may be NULL.
 */
static int drop(const char *state, struct workspace *ws, struct workplace *place,
        struct carrel_error *err)
{
    int r = afterwards_discard(ws, err);
    bool is_full = r == -ENOSPC || r == -EDQUOT;

    if (r < 0 && !is_full)
        return r;
    r = place ? workplace_discard(place, err) : restack_discard(state, ws, err);
    if (r < 0 || !is_full)
        return r;
    r = afterwards_discard(ws, err);
    return r < 0 ? err_wrap(err, r, "run '%s' is discarded, which its journal does not say",
                           ws->run)
                 : 0;
}

/* The living sandbox that has the workspace "T/R"; false: none. */
static bool find_sandbox(const char *name, char id[static REGISTRY_WORD_MAX + 1])
{
    const struct living_query query = { .has_dead = true };
    AUTO(registry_close) struct registry reg = REGISTRY_NONE;
    AUTO(living_list_finish) struct living_list list = { 0 };

    if (registry_open(&reg, NULL) < 0 || living_list_read(&reg, &query, &list, NULL) < 0)
        return false;
    for (size_t i = 0; i < list.n; i++) {
        char whose[2 * NAME_ID_MAX + 2];
        (void)snprintf(whose, sizeof(whose), "%s/%s", list.items[i].task, list.items[i].run);
        if (!list.items[i].is_alive || strcmp(whose, name) != 0)
            continue;
        (void)snprintf(id, REGISTRY_WORD_MAX + 1, "%s", list.items[i].id);
        return true;
    }
    return false;
}

/* No force takes it from whoever has it, so who wants it gone must know how to end that. */
static int say_how_to_end(const char *name, int code, struct carrel_error *err)
{
    const struct carrel_error busy = *err;
    char id[REGISTRY_WORD_MAX + 1];

    return find_sandbox(name, id)
                   ? err_set(err, code, "%s, or end it with 'carrel destroy %s'", busy.message,
                             id)
                   : err_set(err, code,
                             "%s, or end it with SIGTERM: what was written until then is kept",
                             busy.message);
}

int workspaces_discard(const char *name, bool force, struct carrel_error *err)
{
    char state[PATH_MAX];
    AUTO(workspace_free) struct workspace *ws = NULL;
    AUTO(workplace_free) struct workplace *place = NULL;

    int r = state_path(state, sizeof(state), err);
    if (r == 0 && !force) {
        r = hold_place(name, &place, NULL, NULL, err);
        if (r == -EBUSY)
            return say_how_to_end(name, r, err);
        if (r < 0)
            return err_wrap(
                    err, r, "what run '%s' changed is not known (--force discards it)", name);
        r = check_drop(place->ws, err);
        return r < 0 ? r : drop(state, place->ws, place, err);
    }
    if (r == 0)
        r = hold(name, &ws, err);
    if (r == -EBUSY)
        return say_how_to_end(name, r, err);
    return r < 0 ? r : drop(state, ws, NULL, err);
}

int workspaces_open(
        const char *name, const char *at, char *path, size_t size, struct carrel_error *err)
{
    AUTO(workplace_free) struct workplace *place = NULL;

    int r = hold_place(name, &place, NULL, NULL, err);
    if (r < 0)
        return r;
    if (place->ws->is_folder)
        return err_set(err, -ENOTSUP, "a folder without git cannot be opened; apply it");
    if (strcmp(place->ws->snapshot, place->ws->base) != 0) {
        AUTO(evidence_finish) struct evidence evidence = { 0 };
        char commit[OID_MAX];
        r = afterwards_begin(place->ws, "commit_asked", &evidence, err);
        if (r == 0)
            r = explain(place->repo, place->ws,
                    land_commit(place, NULL, evidence.seal, commit, err), err);
        if (r == 0)
            r = afterwards_end(place->ws, "workspace_committed", &evidence, err);
    }
    if (r == 0)
        r = opened_open(place->ws, place->repo, place->checkout, at, path, size, err);
    return r;
}

int workspaces_close(const char *name, struct carrel_error *err)
{
    AUTO(workspace_free) struct workspace *ws = NULL;
    AUTO(repo_free) struct repo *repo = NULL;

    int r = hold(name, &ws, err);
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

    int r = hold(name, &ws, err);
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
    char branch[NAME_BRANCH_MAX + 16];
    char at[OID_MAX];
    int mended = 0;

    int r = hold(name, &ws, err);
    if (r == 0)
        r = workspace_repo(ws, &repo, err);
    if (r < 0 || ws->is_folder)
        return r;
    (void)snprintf(branch, sizeof(branch), "refs/heads/%s", ws->branch);
    r = ref_read(repo, branch, at, err);
    if (r == -ENOENT) { /* a branch at a commit that is gone would break the repository */
        r = explain(repo, ws, r, err);
        if (r != -ENOENT)
            return r;
        r = ref_create(repo, branch, ws->base, err);
        ws->is_published = false;
        ws->branch_at[0] = ws->branch_to[0] = '\0';
        if (r == 0)
            r = workspace_save(ws, err);
        mended++;
    }
    if (r < 0)
        return r;
    char path[PATH_MAX];
    r = workspace_opened_path(ws, path, sizeof(path) - 8, err);
    if (r < 0)
        return r;
    (void)strcat(path, "/.git");
    r = admin_create(repo, ws->task, ws->run, path, ws->branch, err);
    return r == -EEXIST ? mended : r < 0 ? r : mended + 1;
}

int workspaces_prune(const char *repo_dir, uint64_t age_s, bool is_dry_run,
        void (*each)(const struct workspace *ws, void *context), void *context,
        struct carrel_error *err)
{
    AUTO(workspace_list_free) struct workspace_list *list = NULL;
    int64_t limit = (int64_t)time(NULL) - (int64_t)age_s;
    int n = 0;

    int r = workspaces_list(repo_dir, &list, err);
    for (size_t i = 0; r == 0 && i < list->n; i++) {
        const struct workspace *ws = list->items[i];
        char name[2 * NAME_ID_MAX + 4];
        if (ws->phase != WORKSPACE_FINISHED || ws->is_user_locked || ws->is_opened ||
                ws->created_s > limit || !is_safe_to_drop(ws) || workspace_is_in_use(ws))
            continue;
        (void)snprintf(name, sizeof(name), "%s/%s", ws->task, ws->run);
        if (!is_dry_run)
            r = workspaces_discard(name, false, err);
        if (r == -ENOTEMPTY || r == -EBUSY || r == -ENOENT) {
            r = 0; /* a second look found something; or somebody is at it, or was */
            continue;
        }
        if (r == 0 && each)
            each(ws, context);
        n += r == 0;
    }
    return r < 0 ? r : n;
}
