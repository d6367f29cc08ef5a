/* run_dir.c - walks and thins out the directory of a run. */
#include "core/state/run_dir.h"
#include "base/dir.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/tree.h"
#include "core/state/state.h"
#include "journal/file.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define BARE_AGE_S (24 * 60 * 60) /* a younger run without records may be in progress */

int run_dir_open_all(int *fd, struct carrel_error *err)
{
    char state[PATH_MAX];
    char path[PATH_MAX + 8];

    *fd = -1;
    int r = state_path(state, sizeof(state), err);
    if (r < 0)
        return r;
    (void)snprintf(path, sizeof(path), "%s/runs", state);
    *fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return *fd < 0 && errno != ENOENT ? err_set_errno(err, -errno, "'%s'", path) : 0;
}

static void walk(int dir, const char *prefix,
        void (*each)(const char *name, uint64_t bytes, void *context), void *context)
{
    AUTO(dir_close) DIR *list = dir_open(dir, prefix[0] ? prefix : ".");
    char path[2 * NAME_MAX + 2];
    struct stat st;

    for (const char *name; (name = dir_next(list));) {
        if (name[0] == '.' || fstatat(dirfd(list), name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        (void)snprintf(path, sizeof(path), "%s%s%s", prefix, prefix[0] ? "/" : "", name);
        if (S_ISREG(st.st_mode))
            each(path, (uint64_t)st.st_size, context);
        else if (S_ISDIR(st.st_mode) && !prefix[0])
            walk(dir, name, each, context);
    }
}

void run_dir_each(
        int dir, void (*each)(const char *name, uint64_t bytes, void *context), void *context)
{
    walk(dir, "", each, context);
}

static void add_bytes(const char *name, uint64_t bytes, void *context)
{
    (void)name;
    *(uint64_t *)context += bytes;
}

uint64_t run_dir_bytes(int dir)
{
    uint64_t bytes = 0;

    walk(dir, "", add_bytes, &bytes);
    return bytes;
}

int run_dir_hold(int dir)
{
    struct stat st;
    AUTO(fd_close)
    int fd = openat(dir, "journal.jsonl", O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

    /* A directory without a record may belong to a run that is about to lock it. */
    bool is_begun = fd >= 0 && fstat(fd, &st) == 0 && st.st_size > 0;
    if (!is_begun && (fstat(dir, &st) < 0 || time(NULL) - st.st_mtim.tv_sec < BARE_AGE_S))
        return -1;
    if (fd < 0)
        return fcntl(dir, F_DUPFD_CLOEXEC, 0);
    return journal_lock_try(fd) == 0 ? fd_steal(&fd) : -1;
}

bool run_dir_drop_artifacts(int dir)
{
    AUTO(dir_close) DIR *list = dir_open(dir, ".");
    bool was_there = false;

    for (const char *name; (name = dir_next(list));)
        if (strcmp(name, "journal.jsonl") != 0)
            was_there |= tree_remove(dir, name, NULL) == 0; /* else the next sweep tries */
    return was_there;
}
