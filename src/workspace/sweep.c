/*
 * sweep.c - what killed processes left is finished or undone.
 *
 *   found                                   done
 *   in .tmp, lock free                      removed, with its refs
 *   workspace with `creating`, lock free    removed, with its refs
 *   runs/<run> that is not open             unmounted, removed if empty
 *   workspace, lock free                    kept: it may hold work; its disk is unmounted, and
 *                                           removed if it was only being made
 *
 * One thing that cannot be done does not keep the others from being done; the first failure is
 * what is returned at the end.
 */
#include "base/dir.h"
#include "base/err.h"
#include "base/store.h"
#include "base/tree.h"
#include "workspace/exported.h"
#include "workspace/record.h"
#include "workspace/remove.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

struct sweep {
    const char *state;
    struct store store;
    int n; /* things done */
    struct carrel_error *err;
    int result; /* of the first failure */
};

/* Counts a success, keeps the first failure. `why` is where the step put its reason. */
static void note(struct sweep *sweep, int r, const struct carrel_error *why)
{
    if (r >= 0)
        sweep->n++;
    else if (sweep->result == 0)
        sweep->result = err_set(sweep->err, r, "%s", why->message);
}

/* The record has the ids, unless only files are left of which no repository knows. */
static int finish_removed(int dir, void *context)
{
    struct sweep *sweep = context;
    AUTO(workspace_free) struct workspace *ws = NULL;
    struct carrel_error why = { 0 };
    int r = record_load_removed(dir, sweep->store.path, &ws, &why);

    if (r == 0 && ws->task[0] && ws->run[0])
        r = remove_finish(&sweep->store, ws, &why);
    if (r < 0)
        note(sweep, r, &why);
    return r;
}

static void sweep_tmp(struct sweep *sweep)
{
    struct carrel_error why = { 0 };
    int r = store_sweep_with(&sweep->store, finish_removed, sweep, &why);

    if (r < 0)
        note(sweep, r, &why);
    else
        sweep->n += r;
}

/* A file system whose server died answers nothing but this. */
static bool is_mount(int dir, const char *name)
{
    struct statx stx;

    if (statx(dir, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, 0, &stx) < 0)
        return errno == ENOTCONN;
    return (stx.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
}

/* A workspace that is not locked and was never finished. No run was in it; should there be
 * files in it all the same, they are not ours to remove. */
static int undo_half_made(struct workspace **ws, void *context)
{
    struct sweep *sweep = context;
    struct carrel_error why = { 0 };

    if (store_has_disk((*ws)->dir) && workspace_take_lock(*ws, NULL) == 0) {
        store_unmount((*ws)->dir);
        sweep->n += !store_has_disk((*ws)->dir);
    }
    if ((*ws)->phase != WORKSPACE_CREATING || workspace_take_lock(*ws, NULL) < 0)
        return 0;
    if ((*ws)->phase == WORKSPACE_CREATING && tree_is_empty((*ws)->dir, "upper"))
        note(sweep, remove_workspace(&sweep->store, *ws, &why), &why);
    return 0;
}

static int close_opened(struct sweep *sweep, int runs, const char *task, const char *run,
        struct carrel_error *why)
{
    char path[PATH_MAX];

    (void)snprintf(path, sizeof(path), "%s/%s/runs/%s", sweep->store.path, task, run);
    if (is_mount(runs, run) && umount2(path, UMOUNT_NOFOLLOW) < 0)
        return err_set_errno(why, -errno, "unmount '%s', which no workspace has open", path);
    if (unlinkat(runs, run, AT_REMOVEDIR) < 0 && errno != ENOENT)
        return errno == ENOTEMPTY || errno == EEXIST || errno == ENOTDIR
                       ? -ENOTEMPTY
                       : err_set_errno(why, -errno, "remove '%s'", path);
    return 0;
}

/*
 * A place where a workspace was opened on the host. Open and mounted, or open and full of files
 * (a checkout): as it should be. Open, but empty and no mount: the machine was restarted. Not
 * open: the process that opened or closed it was killed.
 */
static void sweep_opened_one(struct sweep *sweep, int runs, const char *task, const char *run)
{
    AUTO(workspace_free) struct workspace *ws = NULL;
    struct carrel_error why = { 0 };
    char name[RECORD_NAME_MAX];

    (void)snprintf(name, sizeof(name), "%s/%s", task, run);
    int r = workspace_find(sweep->state, name, &ws, NULL);
    if (r < 0 && r != -ENOENT)
        return;
    if (ws && (workspace_take_lock(ws, NULL) < 0 || ws->phase == WORKSPACE_CREATING))
        return;
    if (ws && ws->is_opened && (is_mount(runs, run) || !tree_is_empty(runs, run)))
        return;
    r = close_opened(sweep, runs, task, run, &why);
    if (r == 0 && ws && ws->is_opened)
        r = opened_forget(ws, &why);
    if (r != -ENOTEMPTY)
        note(sweep, r, &why);
}

static void sweep_tasks(struct sweep *sweep)
{
    AUTO(dir_close) DIR *tasks = dir_open(sweep->store.top, ".");
    char path[RECORD_NAME_MAX];

    for (const char *task; (task = dir_next(tasks)) != NULL;) {
        if (name_check_id(task, "task", NULL) < 0)
            continue;
        (void)snprintf(path, sizeof(path), "%s/runs", task);
        AUTO(dir_close) DIR *runs = dir_open(sweep->store.top, path);
        for (const char *run; (run = dir_next(runs)) != NULL;) {
            if (name_check_id(run, "run", NULL) == 0)
                sweep_opened_one(sweep, dirfd(runs), task, run);
        }
        remove_unused_task(&sweep->store, task);
    }
}

int workspace_sweep(const char *state, struct carrel_error *err)
{
    struct sweep sweep = { .state = state, .store = STORE_INIT, .err = err };
    int r = record_make_store(state, &sweep.store, err);
    if (r < 0)
        return r;

    sweep_tmp(&sweep);
    r = workspace_each(state, NULL, undo_half_made, &sweep, err);
    if (r < 0 && sweep.result == 0)
        sweep.result = r;
    sweep_tasks(&sweep);
    store_finish(sweep.store);
    return sweep.result < 0 ? sweep.result : sweep.n;
}
