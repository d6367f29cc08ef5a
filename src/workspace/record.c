/*
 * record.c - struct workspace, its directory and its lock.
 *
 * The holder of a lock is asked of the kernel: what is not written cannot be out of date.
 */
#include "workspace/record.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/store.h"
#include "base/str.h"
#include "workspace/meta.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

int record_make_store(const char *state, struct store *out, struct carrel_error *err)
{
    char path[PATH_MAX];

    if (snprintf(path, sizeof(path), "%s/workspaces", state) >= (int)sizeof(path))
        return err_set_errno(err, -ENAMETOOLONG, "'%s/workspaces'", state);
    return store_make(path, out, err);
}

void record_name(const struct workspace *ws, char name[static RECORD_NAME_MAX])
{
    (void)snprintf(name, RECORD_NAME_MAX, "%s/%s", ws->task, ws->run);
}

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
    free(ws->opened_at);
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

int record_load(int dir, const char *store, const char *name, struct workspace **out,
        struct carrel_error *err)
{
    AUTO(workspace_free) struct workspace *ws = record_new();
    int len = (int)strcspn(name, "/");

    if (!ws || asprintf(&ws->path, "%s/%s", store, name) < 0) {
        fd_close(dir);
        return err_set_errno(err, -ENOMEM, "read '%s/%s'", store, name);
    }
    ws->dir = dir;
    (void)snprintf(ws->task, sizeof(ws->task), "%.*s", len, name);
    (void)snprintf(ws->run, sizeof(ws->run), "%s", name[len] ? name + len + 1 : "");
    int r = record_reload(ws, err);
    if (r < 0)
        return r;
    *out = ptr_steal(&ws);
    return 0;
}

int record_load_removed(
        int dir, const char *store, struct workspace **out, struct carrel_error *err)
{
    AUTO(workspace_free) struct workspace *ws = record_new();

    if (!ws)
        return err_set_errno(err, -ENOMEM, "read '%s/.tmp'", store);
    ws->dir = fcntl(dir, F_DUPFD_CLOEXEC, 0);
    if (ws->dir < 0)
        return err_set_errno(err, -errno, "read '%s/.tmp'", store);
    int r = read_meta(ws, err);
    if (r == -ENOMEM)
        return r;
    if (r < 0)
        ws->task[0] = ws->run[0] = '\0';
    if (!ws->repo)
        ws->repo = strdup("");
    if (!ws->repo || asprintf(&ws->path, "%s/%s/%s", store, ws->task, ws->run) < 0)
        return err_set_errno(err, -ENOMEM, "read '%s/.tmp'", store);
    *out = ptr_steal(&ws);
    return 0;
}

void workspace_branch_ref(const struct workspace *ws, char ref[static WORKSPACE_REF_MAX])
{
    (void)snprintf(ref, WORKSPACE_REF_MAX, "refs/heads/%s", ws->branch);
}

void workspace_base_ref(const struct workspace *ws, char ref[static WORKSPACE_REF_MAX])
{
    (void)snprintf(ref, WORKSPACE_REF_MAX, "refs/carrel/%s/%s/%jd.%09ju", ws->task, ws->run,
            (intmax_t)ws->created_s, (uintmax_t)ws->created_ns);
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

int record_try_lock(int dir)
{
    AUTO(fd_close) int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
        return -errno;
    return fd_steal(&fd);
}

/* One line of /proc/locks, see proc(5): "1: FLOCK ADVISORY WRITE 1234 fe:00:5678 0 EOF". */
static bool is_line_of(const char *line, const struct stat *st, int *pid)
{
    unsigned long long inode;
    unsigned dev_major;
    unsigned dev_minor;

    return sscanf(line, "%*u: FLOCK %*s %*s %d %x:%x:%llu", pid, &dev_major, &dev_minor,
                   &inode) == 4 &&
           *pid > 0 && inode == st->st_ino && dev_major == major(st->st_dev) &&
           dev_minor == minor(st->st_dev);
}

static int find_holder(const struct stat *st)
{
    char line[256];
    int pid = 0;
    int found = 0;
    FILE *locks = fopen("/proc/locks", "re");

    if (!locks)
        return 0;
    while (!found && fgets(line, sizeof(line), locks)) {
        if (is_line_of(line, st, &pid))
            found = pid;
    }
    (void)fclose(locks);
    return found;
}

/* "carrel (process 1234)", or "another process" where the kernel does not tell. */
static void describe_holder(int dir, char *text, size_t size)
{
    struct stat st;
    char path[64];
    char name[64];
    char shown[128];

    (void)snprintf(text, size, "another process");
    if (fstat(dir, &st) < 0)
        return;
    int pid = find_holder(&st);
    if (pid == 0)
        return;
    (void)snprintf(path, sizeof(path), "/proc/%d/comm", pid);
    ssize_t n = fd_read_file(AT_FDCWD, path, name, sizeof(name));
    if (n > 0 && name[n - 1] == '\n')
        n--;
    if (n <= 0)
        (void)snprintf(text, size, "process %d", pid);
    else
        (void)snprintf(text, size, "%s (process %d)",
                str_escape(name, (size_t)n, shown, sizeof(shown)), pid);
}

int workspace_take_lock(struct workspace *ws, struct carrel_error *err)
{
    char holder[160];

    if (ws->lock >= 0)
        return 0;
    AUTO(fd_close) int lock = record_try_lock(ws->dir);
    if (lock == -EWOULDBLOCK) {
        describe_holder(ws->dir, holder, sizeof(holder));
        return err_set(err, -EBUSY,
                "workspace '%s/%s' is in use by %s: try again when that has ended", ws->task,
                ws->run, holder);
    }
    if (lock < 0 && lock != -ENOENT)
        return err_set_errno(err, lock, "lock '%s'", ws->path);
    if (lock < 0 || !store_is_named(ws->dir, AT_FDCWD, ws->path))
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

int workspace_set_layers(struct workspace *ws, const char *layers, struct carrel_error *err)
{
    char *before = ws->layers;

    ws->layers = strdup(layers);
    int r = ws->layers ? workspace_save(ws, err) : err_set_errno(err, -ENOMEM, "layers");
    if (r < 0) {
        free(ws->layers);
        ws->layers = before;
        return r;
    }
    free(before);
    return 0;
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
