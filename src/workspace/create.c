/*
 * create.c - a new workspace.
 *
 * In this order, each step recognised by a sweep if we die after it:
 *
 *   1. the entry of the store: it has its record and the file `creating`, and its lock is held
 *      here. Of two creators of one id one cannot publish its draft.
 *   2. the ref of a base that no branch has.
 *   3. the private git dir.
 *   4. `creating` is removed, and everything is there.
 *
 * The user's repository has no branch of the run until there is work for it: see deliver.c.
 *
 * Nothing is synced on this path; it would cost more than all the rest. A kill loses nothing
 * that was written, and a power cut in the seconds after a start loses a workspace whose run
 * died in the same moment: what the run wrote was not synced either. If only the record is
 * short, the sweep keeps the directory as long as it holds work, and says so. The first
 * workspace_save() syncs.
 */
#include "base/err.h"
#include "base/fd.h"
#include "base/store.h"
#include "git/ref.h"
#include "workspace/fork_git.h"
#include "workspace/harvest/lower.h"
#include "workspace/meta.h"
#include "workspace/private.h"
#include "workspace/record.h"
#include "workspace/remove.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int check(const struct workspace_request *request, struct carrel_error *err)
{
    int r = name_check_id(request->task, "task", err);

    if (r == 0)
        r = name_check_id(request->run, "run", err);
    if (r < 0)
        return r;
    if (!request->is_folder && !name_is_oid(request->base))
        return err_set(err, -EINVAL, "a workspace starts from the full id of a commit");
    return 0;
}

static char *copy(const char *text)
{
    return text ? strdup(text) : NULL;
}

static int describe(const struct workspace_request *request, const struct store *store,
        struct workspace **out, struct carrel_error *err)
{
    AUTO(workspace_free) struct workspace *ws = record_new();
    const char *top = request->repo->top;
    const char *repo = request->repo->common_dir;

    if (!ws || asprintf(&ws->path, "%s/%s/%s", store->path, request->task, request->run) < 0)
        return err_set_errno(err, -ENOMEM, "create a workspace");
    ws->repo = copy(repo);
    ws->top = copy(top);
    ws->layers = copy(request->layers);
    if (!ws->repo || (top && !ws->top) || (request->layers && !ws->layers))
        return err_set_errno(err, -ENOMEM, "create a workspace");
    (void)snprintf(ws->task, sizeof(ws->task), "%s", request->task);
    (void)snprintf(ws->run, sizeof(ws->run), "%s", request->run);
    (void)snprintf(ws->base, sizeof(ws->base), "%s", request->base ? request->base : "");
    (void)snprintf(ws->setup, sizeof(ws->setup), "%s", request->setup ? request->setup : "");
    if (!request->is_folder)
        name_branch(ws->task, ws->run, ws->branch);
    ws->phase = WORKSPACE_READY; /* as soon as `creating` is gone */
    ws->mode = request->mode;
    ws->is_folder = request->is_folder;
    ws->is_cut = request->is_cut;
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now); /* cannot fail */
    ws->created_s = (int64_t)now.tv_sec;
    ws->created_ns = (uint64_t)now.tv_nsec;
    *out = ptr_steal(&ws);
    return 0;
}

/* The words for all ways to find out. */
static int is_taken(const struct workspace *ws, const char *of, struct carrel_error *err)
{
    return err_set(err, -EEXIST,
            "workspace '%s/%s' exists already%s%s%s: go on in it (carrel workspace resume "
            "%s/%s), "
            "discard it, or choose another run id",
            ws->task, ws->run, of ? " (of '" : "", of ? of : "", of ? "')" : "", ws->task,
            ws->run);
}

int workspace_check_free(
        const char *state, const char *task, const char *run, struct carrel_error *err)
{
    AUTO(workspace_free) struct workspace *ws = NULL;
    char name[2 * NAME_ID_MAX + 2];

    (void)snprintf(name, sizeof(name), "%s/%s", task, run);
    if (workspace_find(state, name, &ws, NULL) < 0)
        return 0;
    return is_taken(ws, ws->top ? ws->top : ws->repo, err);
}

/* Asked before the run, since its work could not be put there after it. */
static int check_branch_is_free(const struct store *store, const struct repo *repo,
        const struct workspace *ws, struct carrel_error *err)
{
    char name[RECORD_NAME_MAX];
    struct stat st;
    char ref[WORKSPACE_REF_MAX];
    char oid[OID_MAX];

    workspace_branch_ref(ws, ref);
    int r = ref_read(repo, ref, oid, err);
    if (r == -ENOENT)
        return 0;
    if (r < 0)
        return r;
    record_name(ws, name);
    if (fstatat(store->top, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
        return is_taken(ws, NULL, err); /* the branch is its own */
    return err_set(err, -EEXIST,
            "branch '%s' exists already: choose another run id, or delete it with git branch "
            "-D",
            ws->branch);
}

static int write_record(int dir, const struct workspace *ws)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(META_MAX - 1);

    meta_write(ws, &text);
    if (text.is_short)
        return -ENAMETOOLONG;
    return fd_write_new(dir, "meta", text.data, text.len);
}

static int fill(int dir, const struct workspace *ws)
{
    static const char *const tree[] = { "upper", "work", NULL };
    static const char *const git[] = { "gitupper", "gitwork", NULL };
    int r = fd_write_new_text(dir, RECORD_CREATING, "");

    if (r == 0)
        r = write_record(dir, ws);
    if (r == 0)
        r = fd_make_dirs(dir, tree);
    if (r == 0 && !ws->is_folder)
        r = fd_make_dirs(dir, git);
    return r;
}

static int take_id(const struct store *store, struct workspace *ws, struct carrel_error *err)
{
    struct store_draft draft = STORE_DRAFT_INIT;
    char name[RECORD_NAME_MAX];

    record_name(ws, name);
    int r = store_draft(store, &draft, err);
    if (r < 0)
        return r;
    r = fill(draft.dir, ws);
    if (r < 0)
        (void)err_set_errno(err, r, "create '%s'", ws->path);
    if (r == 0)
        r = store_publish(store, &draft, name, err);
    if (r == 0) {
        ws->lock = draft.dir;
        ws->dir = openat(draft.dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return ws->dir < 0 ? err_set_errno(err, -errno, "open '%s'", ws->path) : 0;
    }
    store_drop(store, &draft);
    return r == -EEXIST ? is_taken(ws, NULL, err) : r;
}

static int make_fork(const struct workspace_request *request, const struct workspace *ws,
        int upper, struct carrel_error *err)
{
    struct lower below = { .n = 0 };

    int r = lower_open(&below, request->git_below, err);
    if (r == 0)
        r = fork_git_fill(&below, request->old_branch, ws->branch, ws->base, upper, err);
    lower_close(&below);
    return r;
}

static int make_private(const struct workspace_request *request, const struct workspace *ws,
        struct carrel_error *err)
{
    AUTO(fd_close)
    int upper = openat(ws->dir, "gitupper", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (upper < 0)
        return err_set_errno(err, -errno, "open '%s/gitupper'", ws->path);
    return request->layers
                   ? make_fork(request, ws, upper, err)
                   : private_make_upper(request->repo, upper, ws->branch, ws->base, err);
}

static int keep_base(
        const struct repo *repo, const struct workspace *ws, struct carrel_error *err)
{
    char ref[WORKSPACE_REF_MAX];

    workspace_base_ref(ws, ref);
    return ref_create(repo, ref, ws->base, "carrel: start of the run", err);
}

int workspace_create(const struct workspace_request *request, struct workspace **out,
        struct carrel_error *err)
{
    AUTO(store_finish) struct store store = STORE_INIT;
    AUTO(workspace_free) struct workspace *ws = NULL;
    int r = check(request, err);

    if (r == 0)
        r = record_make_store(request->state, &store, err);
    if (r == 0)
        r = describe(request, &store, &ws, err);
    if (r < 0 || !ws)
        return r;
    if (!ws->is_folder)
        r = check_branch_is_free(&store, request->repo, ws, err);
    if (r == 0)
        r = take_id(&store, ws, err);
    if (r < 0)
        return r;

    if (!ws->is_folder && request->is_base_loose)
        r = keep_base(request->repo, ws, err);
    if (r == 0 && !ws->is_folder)
        r = make_private(request, ws, err);
    if (r == 0 && unlinkat(ws->dir, RECORD_CREATING, 0) < 0)
        r = err_set_errno(err, -errno, "finish '%s'", ws->path);
    if (r < 0) {
        (void)remove_workspace(&store, ws, NULL); /* the sweep removes what stays */
        return r;
    }
    *out = ptr_steal(&ws);
    return 0;
}
