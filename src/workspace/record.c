/*
 * record.c - struct workspace, its directory and its lock.
 *
 * The holder of a lock is asked of the kernel: what is not written cannot be out of date.
 */
#include "workspace/record.h"
#include "base/err.h"
#include "base/fd.h"
#include "workspace/lock.h"
#include "workspace/meta.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

struct workspace *record_new(void)
{
    struct workspace *ws = calloc(1, sizeof(*ws));

    if (ws) {
        ws->dir = -1;
        ws->lock = -1;
    }
    return ws;
}

void workspace_free(struct workspace *ws)
{
    if (!ws)
        return;
    fd_close(ws->lock);
    fd_close(ws->dir);
    free(ws->path);
    free(ws->repo);
    free(ws->top);
    free(ws->layers);
    free(ws);
}

static int read_meta(struct workspace *ws, struct carrel_error *err)
{
    AUTO(free) char *text = malloc(META_MAX);

    if (!text)
        return err_set_errno(err, -ENOMEM, "read a workspace's record");
    ssize_t n = fd_read_file(ws->dir, "meta", text, META_MAX);
    if (n < 0)
        return err_set_errno(err, (int)n, "read 'meta'");
    return meta_read(ws, text, (size_t)n, err);
}

int record_reload(struct workspace *ws, struct carrel_error *err)
{
    char task[sizeof(ws->task)];
    char run[sizeof(ws->run)];
    struct carrel_error why = { 0 };

    memcpy(task, ws->task, sizeof(task));
    memcpy(run, ws->run, sizeof(run));
    int r = read_meta(ws, &why);
    if (r == -ENOMEM)
        return err_set(err, r, "%s", why.message);
    /* Every other process identifies it by the directory's name. */
    memcpy(ws->task, task, sizeof(task));
    memcpy(ws->run, run, sizeof(run));
    if (r < 0) {
        (void)snprintf(ws->note, sizeof(ws->note), "damaged: %.140s", why.message);
        ws->phase = WORKSPACE_READY;
    }
    if (faccessat(ws->dir, RECORD_CREATING, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        ws->phase = WORKSPACE_CREATING;
    if (!ws->repo)
        ws->repo = strdup("");
    return ws->repo ? 0 : err_set_errno(err, -ENOMEM, "read '%s/meta'", ws->path);
}

int record_load(int dir, const char *place, const char *task, const char *run,
        struct workspace **out, struct carrel_error *err)
{
    AUTO(workspace_free) struct workspace *ws = record_new();

    if (!ws || asprintf(&ws->path, "%s/%s/%s", place, task, run) < 0) {
        fd_close(dir);
        return err_set_errno(err, -ENOMEM, "read '%s/%s/%s'", place, task, run);
    }
    ws->dir = dir;
    (void)snprintf(ws->task, sizeof(ws->task), "%s", task);
    (void)snprintf(ws->run, sizeof(ws->run), "%s", run);
    int r = record_reload(ws, err);
    if (r < 0)
        return r;
    *out = ptr_steal(&ws);
    return 0;
}

int record_load_removed(
        int dir, const char *place, struct workspace **out, struct carrel_error *err)
{
    AUTO(workspace_free) struct workspace *ws = record_new();

    if (!ws) {
        fd_close(dir);
        return err_set_errno(err, -ENOMEM, "look into the trash");
    }
    ws->dir = dir;
    int r = read_meta(ws, err);
    if (r == -ENOMEM)
        return r;
    if (r < 0)
        ws->task[0] = ws->run[0] = '\0';
    if (!ws->repo)
        ws->repo = strdup("");
    if (!ws->repo || asprintf(&ws->path, "%s/%s/%s", place, ws->task, ws->run) < 0)
        return err_set_errno(err, -ENOMEM, "look into the trash");
    *out = ptr_steal(&ws);
    return 0;
}

int workspace_opened_path(
        const struct workspace *ws, char *path, size_t size, struct carrel_error *err)
{
    size_t above = strlen(ws->path) - strlen(ws->run); /* with the slash */
    int n = snprintf(path, size, "%.*sruns/%s", (int)above, ws->path, ws->run);

    if (n < 0 || (size_t)n >= size)
        return err_set_errno(err, -ENAMETOOLONG, "'%s'", ws->path);
    return 0;
}

/* A discard renames the directory and then lets go of the lock: what we locked may be trash. */
static bool is_in_place(const struct workspace *ws)
{
    struct stat here;
    struct stat held;

    return fstat(ws->dir, &held) == 0 && lstat(ws->path, &here) == 0 &&
           here.st_dev == held.st_dev && here.st_ino == held.st_ino;
}

int workspace_take_lock(struct workspace *ws, struct carrel_error *err)
{
    char holder[160];

    if (ws->lock >= 0)
        return 0;
    AUTO(fd_close) int lock = lock_try(ws->dir);
    if (lock == -EWOULDBLOCK) {
        lock_describe_holder(ws->dir, holder, sizeof(holder));
        return err_set(err, -EBUSY,
                "workspace '%s/%s' is in use by %s: try again when that has ended", ws->task,
                ws->run, holder);
    }
    if (lock < 0 && lock != -ENOENT)
        return err_set_errno(err, lock, "lock '%s'", ws->path);
    if (lock < 0 || !is_in_place(ws))
        return err_set(
                err, -ENOENT, "workspace '%s/%s' was discarded meanwhile", ws->task, ws->run);
    int r = record_reload(ws, err);
    if (r < 0)
        return r;
    ws->lock = fd_steal(&lock);
    return 0;
}

int workspace_save(struct workspace *ws, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(META_MAX - 1);
    char path[PATH_MAX];
    int n = snprintf(path, sizeof(path), "%s/meta", ws->path);

    meta_write(ws, &text);
    if (n < 0 || (size_t)n >= sizeof(path) || text.is_short)
        return err_set_errno(err, -ENAMETOOLONG, "record '%s'", ws->path);
    return fd_replace_file(path, text.data, text.len, 0600, err);
}

int workspace_repo(const struct workspace *ws, struct repo **out, struct carrel_error *err)
{
    AUTO(repo_free) struct repo *repo = NULL;

    if (!ws->repo[0])
        return err_set(err, -EBADMSG, "workspace '%s/%s': it is not known whose it is (%s)",
                ws->task, ws->run, ws->note);
    /* By way of the work tree, so that the repository knows it; unless another one is there
     * now, or none. */
    if (ws->top && repo_open(ws->top, &repo, NULL) == 0 &&
            strcmp(repo->common_dir, ws->repo) == 0) {
        *out = ptr_steal(&repo);
        return 0;
    }
    repo_free(repo);
    repo = NULL;
    int r = repo_open(ws->repo, &repo, err);
    if (r == 0 && strcmp(repo->common_dir, ws->repo) != 0)
        r = err_set(err, -ENOENT, "the repository '%s' is not there any more", ws->repo);
    if (r == 0 && ws->is_folder && ws->top && !repo->top) {
        repo->top = strdup(ws->top); /* the hidden repository knows no work tree */
        r = repo->top ? 0 : err_set_errno(err, -ENOMEM, "folder");
    }
    if (r < 0)
        return err_wrap(err, r, "workspace '%s/%s'", ws->task, ws->run);
    *out = ptr_steal(&repo);
    return 0;
}
