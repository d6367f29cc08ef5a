/* expiry.c - recording the use of cached directories, and removing old ones. */
#include "workspace/cache/expiry.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "base/tree.h"
#include "workspace/workspace.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define OLD ".old-" /* being removed */
#define GIT_DIR ".git"
#define SETUP_KEY 64U /* hex digits */

enum kind { KIND_SETUP, KIND_CUT, KIND_FOLDER };

struct sweep {
    const char *state;
    int64_t until_s; /* what was used later stays */
    int removed;
};

static int open_dir(int parent, const char *name)
{
    return openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static bool has_name(int fd, int parent, const char *name)
{
    struct stat by_name;
    struct stat by_fd;

    return fstatat(parent, name, &by_name, AT_SYMLINK_NOFOLLOW) == 0 &&
           fstat(fd, &by_fd) == 0 && by_name.st_ino == by_fd.st_ino &&
           by_name.st_dev == by_fd.st_dev;
}

int cached_use(int parent, const char *name)
{
    AUTO(fd_close) int fd = open_dir(parent, name);
    if (fd < 0)
        return -errno;
    while (flock(fd, LOCK_SH) < 0)
        if (errno != EINTR)
            return -errno;
    if (!has_name(fd, parent, name))
        return -ENOENT;
    (void)futimens(fd, NULL); /* it is ours: this does not fail */
    return 0;
}

struct need {
    enum kind kind;
    const char *name;
    bool is_needed;
};

static bool is_of_folder(const char *repo, const char *name)
{
    size_t len = strlen(repo);
    size_t tail = strlen(name) + strlen("/" GIT_DIR);

    return len > tail && repo[len - tail - 1] == '/' &&
           strncmp(repo + len - tail, name, strlen(name)) == 0 &&
           strcmp(repo + len - strlen("/" GIT_DIR), "/" GIT_DIR) == 0;
}

/* One whose record cannot be read may need any of them. */
static int note_need(struct workspace **found, void *context)
{
    const struct workspace *ws = *found;
    struct need *need = context;
    bool is_needed = !ws->base[0];

    switch (need->kind) {
    case KIND_SETUP:
        is_needed = is_needed || strcmp(ws->setup, need->name) == 0;
        break;
    case KIND_CUT: /* of whichever repository: those that have the commit are clones */
        is_needed = is_needed || (ws->is_cut && strcmp(ws->base, need->name) == 0);
        break;
    case KIND_FOLDER:
        is_needed = is_needed || (ws->is_folder && is_of_folder(ws->repo, need->name));
        break;
    }
    need->is_needed = need->is_needed || is_needed;
    return 0;
}

/* Who cannot say loses nothing. */
static bool is_needed(const struct sweep *sweep, enum kind kind, const char *name)
{
    struct need need = { .kind = kind, .name = name };

    return workspace_each(sweep->state, NULL, note_need, &need, NULL) < 0 || need.is_needed;
}

static void remove_name(struct sweep *sweep, int parent, const char *name)
{
    if (tree_remove(parent, name, NULL) == 0) /* else the next sweep tries again */
        sweep->removed++;
}

static void consider(struct sweep *sweep, enum kind kind, int parent, const char *name)
{
    char inside[NAME_MAX + sizeof("/" GIT_DIR)];
    char old[NAME_MAX + sizeof(OLD)];
    struct stat st;

    (void)snprintf(
            inside, sizeof(inside), "%s%s", name, kind == KIND_FOLDER ? "/" GIT_DIR : "");
    AUTO(fd_close) int fd = open_dir(parent, inside);
    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0 || !has_name(fd, parent, inside) ||
            fstat(fd, &st) < 0 || st.st_mtim.tv_sec > sweep->until_s ||
            is_needed(sweep, kind, name))
        return;
    (void)snprintf(old, sizeof(old), OLD "%s", name);
    if (strlen(old) <= NAME_MAX && renameat(parent, name, parent, old) == 0)
        remove_name(sweep, parent, old);
}

static bool is_hex(const char *name)
{
    return strspn(name, "0123456789abcdef") == strlen(name);
}

/* Half-made ones. Who makes a setup layer holds the lock on all, which we have; of the others
 * one that old has no maker any more. */
static bool is_left(const struct sweep *sweep, enum kind kind, int parent, const char *name)
{
    struct stat st;

    if (strncmp(name, OLD, strlen(OLD)) == 0)
        return kind != KIND_SETUP; /* layers have a sweep of their own, for this name, too */
    if (kind == KIND_SETUP)
        return name[0] == '.' && strlen(name) == SETUP_KEY + 1 && is_hex(name + 1);
    return name[0] == '.' && fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
           st.st_mtim.tv_sec < sweep->until_s;
}

static bool is_one(enum kind kind, const char *name)
{
    switch (kind) {
    case KIND_SETUP:
        return strlen(name) == SETUP_KEY && is_hex(name);
    case KIND_CUT:
        return name_is_oid(name);
    case KIND_FOLDER:
        return name[0] != '.';
    }
    return false;
}

/* A description of its own: the caller's stays at its beginning. NULL: not now. */
static DIR *open_list(int dir)
{
    int copy = open_dir(dir, ".");
    DIR *list = copy < 0 ? NULL : fdopendir(copy);

    if (!list)
        fd_close(copy);
    return list;
}

static void sweep_dir(struct sweep *sweep, enum kind kind, int parent)
{
    DIR *list = open_list(parent);
    const struct dirent *entry;

    if (!list)
        return;
    while ((entry = readdir(list))) {
        const char *name = entry->d_name;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
            continue;
        if (is_left(sweep, kind, parent, name))
            remove_name(sweep, parent, name);
        else if (is_one(kind, name))
            consider(sweep, kind, parent, name);
    }
    (void)closedir(list);
}

static void sweep_cuts(struct sweep *sweep, int cuts)
{
    DIR *list = open_list(cuts);
    const struct dirent *entry;

    if (!list)
        return;
    while ((entry = readdir(list))) {
        if (entry->d_name[0] == '.')
            continue;
        AUTO(fd_close) int repo = open_dir(cuts, entry->d_name);
        if (repo < 0)
            continue;
        sweep_dir(sweep, KIND_CUT, repo);
        (void)unlinkat(cuts, entry->d_name, AT_REMOVEDIR); /* if it is empty now */
    }
    (void)closedir(list);
}

/* The directory, or -1 where nothing was ever made. */
static int open_part(const char *state, const char *name)
{
    char path[PATH_MAX];

    return snprintf(path, sizeof(path), "%s/%s", state, name) < (int)sizeof(path)
                   ? open_dir(AT_FDCWD, path)
                   : -1;
}

int expiry_sweep(const char *state, uint64_t max_age_s, struct carrel_error *err)
{
    struct sweep sweep = { .state = state, .until_s = (int64_t)time(NULL) };

    if (max_age_s > (uint64_t)sweep.until_s)
        return err_set(err, -EINVAL, "sweep: no such age");
    sweep.until_s -= (int64_t)max_age_s;
    AUTO(fd_close) int layers = open_part(state, "layers");
    if (layers >= 0 && flock(layers, LOCK_EX | LOCK_NB) == 0) /* else one is being made */
        sweep_dir(&sweep, KIND_SETUP, layers);
    AUTO(fd_close) int cuts = open_part(state, "cuts");
    if (cuts >= 0)
        sweep_cuts(&sweep, cuts);
    AUTO(fd_close) int folders = open_part(state, "folders");
    if (folders >= 0)
        sweep_dir(&sweep, KIND_FOLDER, folders);
    return sweep.removed;
}
