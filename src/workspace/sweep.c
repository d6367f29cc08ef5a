/*
 * sweep.c - what killed processes left is finished or undone.
 *
 *   found                                   done
 *   in .tmp, lock free                      removed, with its refs
 *   workspace with `creating`, lock free    removed, with its refs
 *   runs/<run> that is not open             unmounted, removed if empty
 *   workspace, lock free                    kept: it may hold work
 *
 * One thing that cannot be done does not keep the others from being done; the first failure is
 * what is returned at the end.
 */
#include "base/err.h"
#include "base/fd.h"
#include "base/tree.h"
#include "workspace/admin.h"
#include "workspace/lock.h"
#include "workspace/place.h"
#include "workspace/record.h"
#include "workspace/remove.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

struct repo_name {
    char *path;
    struct repo_name *next;
};

struct sweep {
    const char *state;
    struct place place;
    struct repo_name *repos; /* of all workspaces and of the trash, each once */
    int n;                   /* things done */
    struct carrel_error *err;
    int result; /* of the first failure */
};

/* A closedir() that takes NULL. */
static void close_dir(DIR *dir)
{
    if (dir)
        (void)closedir(dir);
}
DEFINE_AUTO(DIR *, close_dir)

static DIR *open_dir(int dir, const char *name)
{
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *stream = fd < 0 ? NULL : fdopendir(fd);

    if (!stream)
        fd_close(fd);
    return stream;
}

static const char *next_entry(DIR *dir)
{
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            return entry->d_name;
    }
    return NULL;
}

/* Counts a success, keeps the first failure. `why` is where the step put its reason. Something
 * that is in use, or that it is too early to judge, is neither. */
static void note(struct sweep *sweep, int r, const struct carrel_error *why)
{
    if (r == -EAGAIN)
        return;
    if (r >= 0)
        sweep->n++;
    else if (sweep->result == 0)
        sweep->result = err_set(sweep->err, r, "%s", why->message);
}

static void remember_repo(struct sweep *sweep, const char *path)
{
    if (!path || !path[0])
        return;
    for (const struct repo_name *name = sweep->repos; name; name = name->next) {
        if (strcmp(name->path, path) == 0)
            return;
    }
    struct repo_name *name = calloc(1, sizeof(*name));
    char *copy = strdup(path);
    if (!name || !copy) {
        free(name);
        free(copy);
        note(sweep, -ENOMEM, &(struct carrel_error){ .message = "sweep: out of memory" });
        return;
    }
    name->path = copy;
    name->next = sweep->repos;
    sweep->repos = name;
}

/* With the gate in our hands nobody is filling a draft, or has made a directory for one and
 * nothing in it yet. Busy: the next sweep. */
static void sweep_drafts(struct sweep *sweep)
{
    AUTO(fd_close) int gate = place_close_gate(&sweep->place, LOCK_EX | LOCK_NB, NULL);
    AUTO(close_dir) DIR *dir = gate < 0 ? NULL : open_dir(sweep->place.drafts, ".");
    AUTO(close_dir) DIR *tasks = gate < 0 ? NULL : open_dir(sweep->place.top, ".");

    for (const char *name; (name = next_entry(dir)) != NULL;) {
        struct carrel_error why = { 0 };
        note(sweep, tree_remove(sweep->place.drafts, name, &why), &why);
    }
    for (const char *task; (task = next_entry(tasks)) != NULL;) {
        if (name_check_id(task, "task", NULL) == 0)
            place_prune_task(&sweep->place, task);
    }
}

static enum place_end end_of(const char *name)
{
    const char *dot = strrchr(name, '.');

    for (enum place_end end = PLACE_UNDONE; dot && end < PLACE_FILES; end++) {
        if (strcmp(dot + 1, place_end_name(end)) == 0)
            return end;
    }
    return PLACE_FILES;
}

/*
 * Finishes one thing in the trash. Its record still has the ids: only files that the repository
 * knows nothing of have lost them.
 */
static int finish_removed(struct sweep *sweep, const char *name, struct carrel_error *why)
{
    AUTO(workspace_free) struct workspace *ws = NULL;
    enum place_end end = end_of(name);
    int fd = openat(sweep->place.trash, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return tree_remove(sweep->place.trash, name, why); /* a stray file, or gone */
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        fd_close(fd);
        return -EAGAIN;
    }
    int r = record_load_removed(fd, sweep->place.path, &ws, why);
    if (r < 0)
        return r;
    if (end == PLACE_FILES || !ws->task[0] || !ws->run[0])
        return tree_remove(sweep->place.trash, name, why);
    remember_repo(sweep, ws->repo);
    return retire(&sweep->place, ws, name, end, why);
}

static void sweep_tmp(struct sweep *sweep)
{
    AUTO(close_dir) DIR *dir = open_dir(sweep->place.trash, ".");

    for (const char *name; (name = next_entry(dir)) != NULL;) {
        struct carrel_error why = { 0 };
        note(sweep, finish_removed(sweep, name, &why), &why);
    }
}

static bool is_empty(int dir, const char *name)
{
    AUTO(close_dir) DIR *stream = open_dir(dir, name);

    return stream && !next_entry(stream);
}

/* A workspace that nobody holds and that was never finished. No run was in it; should there be
 * files in it all the same, they are not ours to remove. */
static int undo_half_made(struct workspace **ws, void *context)
{
    struct sweep *sweep = context;
    struct carrel_error why = { 0 };

    remember_repo(sweep, (*ws)->repo);
    if ((*ws)->phase != WORKSPACE_CREATING || workspace_take_lock(*ws, NULL) < 0)
        return 0;
    if ((*ws)->phase == WORKSPACE_CREATING && is_empty((*ws)->dir, "upper"))
        note(sweep, retire(&sweep->place, *ws, NULL, PLACE_UNDONE, &why), &why);
    return 0;
}

struct orphans {
    struct sweep *sweep;
    const struct repo *repo;
};

static int take_orphan(const char *task, const char *run, void *context)
{
    struct orphans *orphans = context;
    struct carrel_error why = { 0 };
    int r = retire_orphan(&orphans->sweep->place, orphans->repo, task, run, &why);

    if (r != 0)
        note(orphans->sweep, r, &why);
    return 0;
}

static void sweep_repo(struct sweep *sweep, const char *path)
{
    AUTO(repo_free) struct repo *repo = NULL;
    struct carrel_error why = { 0 };
    struct orphans orphans = { .sweep = sweep };
    int r = repo_open(path, &repo, &why);

    if (r == -ENOENT || (r == 0 && strcmp(repo->common_dir, path) != 0))
        return; /* it is gone; its workspaces stay until they are discarded */
    orphans.repo = repo;
    if (r == 0)
        r = admin_list(repo, take_orphan, &orphans, &why);
    if (r < 0)
        note(sweep, r, &why);
}

/* A file system whose server died answers nothing but this. */
static bool is_mount(int dir, const char *name)
{
    struct statx stx;

    if (statx(dir, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, 0, &stx) < 0)
        return errno == ENOTCONN;
    return (stx.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
}

static int close_opened(struct sweep *sweep, int runs, const char *task, const char *run,
        struct carrel_error *why)
{
    char path[PATH_MAX];

    (void)snprintf(path, sizeof(path), "%s/%s/runs/%s", sweep->place.path, task, run);
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
    char name[PLACE_ID_MAX];

    place_id(task, run, name);
    int r = workspace_find(sweep->state, name, &ws, NULL);
    if (r < 0 && r != -ENOENT)
        return;
    if (ws && (workspace_take_lock(ws, NULL) < 0 || ws->phase == WORKSPACE_CREATING))
        return;
    if (ws && ws->is_opened && (is_mount(runs, run) || !is_empty(runs, run)))
        return;
    r = close_opened(sweep, runs, task, run, &why);
    if (r == 0 && ws && ws->is_opened) {
        ws->is_opened = false;
        r = workspace_save(ws, &why);
    }
    if (r != -ENOTEMPTY)
        note(sweep, r, &why);
}

static void sweep_opened(struct sweep *sweep)
{
    AUTO(close_dir) DIR *tasks = open_dir(sweep->place.top, ".");
    char path[PLACE_ID_MAX];

    for (const char *task; (task = next_entry(tasks)) != NULL;) {
        if (name_check_id(task, "task", NULL) < 0)
            continue;
        place_id(task, "runs", path);
        AUTO(close_dir) DIR *runs = open_dir(sweep->place.top, path);
        for (const char *run; (run = next_entry(runs)) != NULL;) {
            if (name_check_id(run, "run", NULL) == 0)
                sweep_opened_one(sweep, dirfd(runs), task, run);
        }
    }
}

int workspace_sweep(const char *state, struct carrel_error *err)
{
    struct sweep sweep = { .state = state, .place = PLACE_INIT, .err = err };
    int r = place_open(state, &sweep.place, err);
    if (r < 0)
        return r;

    sweep_drafts(&sweep);
    sweep_tmp(&sweep);
    r = workspace_each(state, NULL, undo_half_made, &sweep, err);
    if (r < 0 && sweep.result == 0)
        sweep.result = r;
    for (struct repo_name *name = sweep.repos, *next; name; name = next) {
        sweep_repo(&sweep, name->path);
        next = name->next;
        free(name->path);
        free(name);
    }
    sweep_opened(&sweep);
    place_finish(sweep.place);
    return sweep.result < 0 ? sweep.result : sweep.n;
}
