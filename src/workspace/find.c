/* find.c - workspaces by name, and all of them. */
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "workspace/record.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>

/* A closedir() that takes NULL. */
static void close_dir(DIR *dir)
{
    if (dir)
        (void)closedir(dir);
}
DEFINE_AUTO(DIR *, close_dir)

/* NULL and 0 when there is no such directory. */
static int open_dir(int dir, const char *name, DIR **out)
{
    AUTO(fd_close) int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    *out = NULL;
    if (fd < 0)
        return errno == ENOENT || errno == ENOTDIR || errno == ELOOP ? 0 : -errno;
    *out = fdopendir(fd);
    if (!*out)
        return -errno;
    (void)fd_steal(&fd);
    return 0;
}

/* The next entry that may be a task or a run. */
static const char *next_id(DIR *dir)
{
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (name_check_id(entry->d_name, "run", NULL) == 0)
            return entry->d_name;
    }
    return NULL;
}

/* Calls `each` with every task and run; what it returns ends the walk unless it is 0. */
struct walk {
    const char *path; /* <state>/workspaces */
    int (*each)(struct walk *walk, int task_dir, const char *task, const char *run);
    struct carrel_error *err;
};

static int walk_task(struct walk *walk, int top, const char *task)
{
    AUTO(close_dir) DIR *runs = NULL;
    int r = open_dir(top, task, &runs);
    if (r < 0)
        return err_set_errno(walk->err, r, "list '%s/%s'", walk->path, task);
    if (!runs)
        return 0;

    for (const char *run; r == 0 && (run = next_id(runs)) != NULL;)
        r = walk->each(walk, dirfd(runs), task, run);
    return r;
}

static int walk_all(struct walk *walk)
{
    AUTO(close_dir) DIR *tasks = NULL;
    int r = open_dir(AT_FDCWD, walk->path, &tasks);
    if (r < 0)
        return err_set_errno(walk->err, r, "list '%s'", walk->path);
    if (!tasks)
        return 0;

    for (const char *task; r == 0 && (task = next_id(tasks)) != NULL;)
        r = walk_task(walk, dirfd(tasks), task);
    return r;
}

static int make_path(const char *state, char path[static PATH_MAX], struct carrel_error *err)
{
    int n = snprintf(path, PATH_MAX, "%s/workspaces", state);

    if (n < 0 || n >= PATH_MAX)
        return err_set_errno(err, -ENAMETOOLONG, "'%s/workspaces'", state);
    return 0;
}

/* -ENOENT: there is none, or not any more. */
static int load(const char *place, int task_dir, const char *task, const char *run,
        struct workspace **out, struct carrel_error *err)
{
    int fd = openat(task_dir, run, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0)
        return err_set_errno(err, -errno, "open '%s/%s/%s'", place, task, run);
    return record_load(fd, place, task, run, out, err);
}

struct each_walk {
    struct walk base;
    const struct repo *repo;
    int (*each)(struct workspace **ws, void *context);
    void *context;
};

static int load_and_call(struct walk *walk, int task_dir, const char *task, const char *run)
{
    struct each_walk *each = container_of(walk, struct each_walk, base);
    AUTO(workspace_free) struct workspace *ws = NULL;
    int r = load(walk->path, task_dir, task, run, &ws, walk->err);

    if (r == -ENOENT || r == -ENOTDIR || r == -ELOOP)
        return 0; /* discarded while we looked, or nothing of ours */
    if (r < 0 || !ws)
        return r;
    if (each->repo && strcmp(ws->repo, each->repo->common_dir) != 0)
        return 0;
    r = each->each(&ws, each->context);
    return r < 0 ? r : 0;
}

int workspace_each(const char *state, const struct repo *repo,
        int (*each)(struct workspace **ws, void *context), void *context,
        struct carrel_error *err)
{
    char path[PATH_MAX];
    struct each_walk walk = {
        .base = { .path = path, .each = load_and_call, .err = err },
        .repo = repo,
        .each = each,
        .context = context,
    };
    int r = make_path(state, path, err);

    return r < 0 ? r : walk_all(&walk.base);
}

/* The workspaces that have the run, and the nearest. */
struct search {
    struct walk base;
    const char *run;
    char task[NAME_ID_MAX + 1]; /* of the first that has it */
    char tasks[256];            /* of all, for the message */
    size_t n;
    char near[2 * NAME_ID_MAX + 2]; /* shares the longest beginning */
    size_t near_len;
};

static void note_found(struct search *search, const char *task)
{
    size_t len = strlen(search->tasks);

    if (search->n++ == 0)
        (void)snprintf(search->task, sizeof(search->task), "%s", task);
    (void)snprintf(search->tasks + len, sizeof(search->tasks) - len, "%s%s/%s",
            len > 0 ? ", " : "", task, search->run);
}

static size_t common_prefix(const char *a, const char *b)
{
    size_t n = 0;

    while (a[n] && a[n] == b[n])
        n++;
    return n;
}

static int look(struct walk *walk, int task_dir, const char *task, const char *run)
{
    struct search *search = container_of(walk, struct search, base);
    size_t shared = common_prefix(run, search->run);

    (void)task_dir;
    if (strcmp(run, search->run) == 0)
        note_found(search, task);
    if (shared > search->near_len) {
        search->near_len = shared;
        (void)snprintf(search->near, sizeof(search->near), "%s/%s", task, run);
    }
    return 0;
}

static int complain(const struct search *search, const char *name, struct carrel_error *err)
{
    /* "R-" begins every id that carrel makes: only more than that is a likeness. */
    if (search->near_len > 2)
        return err_set(err, -ENOENT, "there is no workspace '%s'; the nearest is '%s'", name,
                search->near);
    return err_set(err, -ENOENT,
            "there is no workspace '%s'; 'carrel workspace list' shows those there are", name);
}

static int split_name(const char *name, char task[static NAME_ID_MAX + 1], const char **run,
        struct carrel_error *err)
{
    const char *slash = strchr(name, '/');
    int r = 0;

    task[0] = '\0';
    *run = slash ? slash + 1 : name;
    if (slash) {
        (void)snprintf(task, NAME_ID_MAX + 1, "%.*s",
                (int)(slash - name > NAME_ID_MAX ? NAME_ID_MAX : slash - name), name);
        r = name_check_id(task, "task", err);
    }
    return r < 0 ? r : name_check_id(*run, "run", err);
}

static int open_found(
        const char *path, const char *task, const char *run, struct workspace **out)
{
    AUTO(fd_close)
    int top = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    AUTO(fd_close)
    int dir = top < 0 ? -1 : openat(top, task, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (dir < 0)
        return -errno;
    return load(path, dir, task, run, out, NULL);
}

int workspace_find(
        const char *state, const char *name, struct workspace **out, struct carrel_error *err)
{
    char path[PATH_MAX];
    char task[NAME_ID_MAX + 1];
    struct search search = { .base = { .path = path, .each = look, .err = err } };
    int r = make_path(state, path, err);

    if (r == 0)
        r = split_name(name, task, &search.run, err);
    if (r < 0)
        return r;
    if (task[0] && open_found(path, task, search.run, out) == 0)
        return 0;
    r = walk_all(&search.base);
    if (r < 0)
        return r;
    if (task[0] || search.n == 0)
        return complain(&search, name, err);
    if (search.n > 1)
        return err_set(err, -EEXIST, "there is more than one run '%s': say which (%s)", name,
                search.tasks);
    r = open_found(path, search.task, search.run, out);
    if (r == -ENOENT)
        return err_set(err, r, "there is no workspace '%s' any more", name);
    if (r < 0)
        return err_set_errno(err, r, "open workspace '%s/%s'", search.task, search.run);
    return 0;
}
