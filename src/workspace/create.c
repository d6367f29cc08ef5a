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
#include "base/tree.h"
#include "git/newfile.h"
#include "git/ref.h"
#include "workspace/admin.h"
#include "workspace/harvest/lower.h"
#include "workspace/lock.h"
#include "workspace/meta.h"
#include "workspace/place.h"
#include "workspace/private.h"
#include "workspace/record.h"
#include "workspace/remove.h"
#include "workspace/stack.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define HEADS "refs/heads/"

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

static int describe(const struct workspace_request *request, const struct place *place,
        struct workspace **out, struct carrel_error *err)
{
    AUTO(workspace_free) struct workspace *ws = record_new();
    const char *top = request->repo->top;
    const char *repo = request->repo->common_dir;

    if (!ws || asprintf(&ws->path, "%s/%s/%s", place->path, request->task, request->run) < 0)
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

static void full_ref(
        const struct workspace *ws, char ref[static sizeof(HEADS) + NAME_BRANCH_MAX])
{
    (void)snprintf(ref, sizeof(HEADS) + NAME_BRANCH_MAX, HEADS "%s", ws->branch);
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

/*
 * Asked before anything is made, so that a sweep after a crash may take a branch at base for
 * one that this workspace made. Making it asks again, and that answer counts.
 */
static int check_branch_is_free(const struct place *place, const struct repo *repo,
        const struct workspace *ws, struct carrel_error *err)
{
    char id[PLACE_ID_MAX];
    struct stat st;
    char ref[sizeof(HEADS) + NAME_BRANCH_MAX];
    char oid[OID_MAX];

    full_ref(ws, ref);
    int r = ref_read(repo, ref, oid, err);
    if (r == -ENOENT)
        return 0;
    if (r < 0)
        return r;
    place_id(ws->task, ws->run, id);
    if (fstatat(place->top, id, &st, AT_SYMLINK_NOFOLLOW) == 0)
        return is_taken(
                ws, NULL, err); /* the branch is its own: deleting that would not help */
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
    return newfile_write(dir, "meta", text.data, text.len);
}

/* Fills the draft and takes its lock, while nobody else knows of it. */
static int fill(int dir, struct workspace *ws)
{
    static const char *const tree[] = { "upper", "work", NULL };
    static const char *const git[] = { "gitupper", "gitwork", NULL };
    int r = newfile_write_text(dir, "lock", "");

    if (r < 0)
        return r;
    ws->lock = lock_try(dir);
    if (ws->lock < 0) {
        r = ws->lock;
        ws->lock = -1;
        return r;
    }
    /* A second name of a file that is there costs far less than a new one. */
    if (linkat(dir, "lock", dir, RECORD_CREATING, 0) < 0)
        return -errno;
    r = write_record(dir, ws);
    if (r == 0)
        r = newfile_make_dirs(dir, tree);
    if (r == 0 && !ws->is_folder)
        r = newfile_make_dirs(dir, git);
    return r;
}

/* Gives the draft its name. A workspace is never empty, so rename() does not replace one. */
static int name_draft(const struct place *place, const char *draft, const struct workspace *ws)
{
    char id[PLACE_ID_MAX];

    place_id(ws->task, ws->run, id);
    if (mkdirat(place->top, ws->task, 0700) < 0 && errno != EEXIST)
        return -errno;
    if (renameat(place->drafts, draft, place->top, id) == 0)
        return 0;
    return errno == ENOTEMPTY ? -EEXIST : -errno;
}

static int take_id(const struct place *place, struct workspace *ws, struct carrel_error *err)
{
    char draft[PLACE_NAME_MAX];
    int r = place_unique(draft, err);
    if (r < 0)
        return r;
    AUTO(fd_close) int gate = place_close_gate(place, LOCK_SH, err);
    if (gate < 0)
        return gate;

    if (mkdirat(place->drafts, draft, 0700) < 0)
        return err_set_errno(err, -errno, "create '%s'", ws->path);
    ws->dir = openat(place->drafts, draft, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    r = ws->dir < 0 ? -errno : fill(ws->dir, ws);
    if (r == 0)
        r = name_draft(place, draft, ws);
    if (r == 0)
        return 0;
    (void)tree_remove(place->drafts, draft, NULL); /* a few files of ours; r is what matters */
    if (r == -EEXIST)
        return is_taken(ws, NULL, err);
    return err_set_errno(err, r, "create '%s'", ws->path);
}

static int make_admin(
        const struct repo *repo, const struct workspace *ws, struct carrel_error *err)
{
    char git_file[PATH_MAX + sizeof("/.git")];
    int r = workspace_opened_path(ws, git_file, PATH_MAX, err);

    if (r < 0)
        return r;
    (void)strcat(git_file, "/.git");
    return admin_create(repo, ws->task, ws->run, git_file, ws->branch, err);
}

static int make_fork(const struct workspace_request *request, const struct workspace *ws,
        int upper, struct carrel_error *err)
{
    struct lower below = { .n = 0 };

    int r = lower_open(&below, request->git_below, err);
    if (r == 0)
        r = stack_fork_git(&below, request->old_branch, ws->branch, ws->base, upper, err);
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

/* Steps 2 to 4; on failure the repository is as before. */
static int enter_repo(const struct workspace_request *request, const struct workspace *ws,
        struct carrel_error *err)
{
    const struct repo *repo = request->repo;
    char ref[sizeof(HEADS) + NAME_BRANCH_MAX];

    full_ref(ws, ref);
    int r = ref_create(repo, ref, ws->base, err);
    if (r < 0)
        return r;
    r = make_admin(repo, ws, err);
    if (r < 0)
        goto delete_branch;
    r = make_private(request, ws, err);
    if (r == 0)
        return 0;
    (void)admin_remove(repo, ws->task, ws->run, NULL); /* what failed first is what matters */
delete_branch:
    (void)ref_delete(repo, ref, ws->base, NULL);
    return r;
}

int workspace_create(const struct workspace_request *request, struct workspace **out,
        struct carrel_error *err)
{
    AUTO(place_finish) struct place place = PLACE_INIT;
    AUTO(workspace_free) struct workspace *ws = NULL;
    int r = check(request, err);

    if (r == 0)
        r = place_open(request->state, &place, err);
    if (r == 0)
        r = describe(request, &place, &ws, err);
    if (r < 0 || !ws)
        return r;
    if (!ws->is_folder)
        r = check_branch_is_free(&place, request->repo, ws, err);
    if (r == 0)
        r = take_id(&place, ws, err);
    if (r < 0)
        return r;

    if (!ws->is_folder)
        r = enter_repo(request, ws, err);
    if (r == 0 && unlinkat(ws->dir, RECORD_CREATING, 0) < 0)
        r = err_set_errno(err, -errno, "finish '%s'", ws->path);
    if (r < 0) {
        (void)retire_files(&place, ws, NULL); /* the sweep takes what stays */
        return r;
    }
    *out = ptr_steal(&ws);
    return 0;
}
