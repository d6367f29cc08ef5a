/* place.c - the directory of all workspaces. */
#include "workspace/place.h"
#include "base/err.h"
#include "base/fd.h"
#include "git/name.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

_Static_assert(PLACE_ID_MAX > 2 * NAME_ID_MAX + 1, "two ids and a slash fit");

/* Opens the directory `name`, making it and, for an absolute path, those above it. */
static int open_or_make(int dir, const char *name)
{
    char above[PATH_MAX];
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd >= 0)
        return fd;
    if (errno != ENOENT)
        return -errno;
    if (mkdirat(dir, name, 0700) < 0 && errno != EEXIST) {
        const char *slash = strrchr(name, '/');
        if (errno != ENOENT || !slash || slash == name || strlen(name) >= sizeof(above))
            return -errno;
        (void)snprintf(above, sizeof(above), "%.*s", (int)(slash - name), name);
        AUTO(fd_close) int parent = open_or_make(dir, above);
        if (parent < 0)
            return parent;
        if (mkdirat(dir, name, 0700) < 0 && errno != EEXIST)
            return -errno;
    }
    fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

int place_open(const char *state, struct place *out, struct carrel_error *err)
{
    AUTO(place_finish) struct place place = PLACE_INIT;

    if (asprintf(&place.path, "%s/workspaces", state) < 0) {
        place.path = NULL;
        return err_set_errno(err, -ENOMEM, "open the workspaces");
    }
    place.top = open_or_make(AT_FDCWD, place.path);
    if (place.top < 0)
        return err_set_errno(err, place.top, "open the workspaces in '%s'", place.path);
    place.drafts = open_or_make(place.top, ".new");
    if (place.drafts < 0)
        return err_set_errno(err, place.drafts, "open '%s/.new'", place.path);
    place.trash = open_or_make(place.top, ".trash");
    if (place.trash < 0)
        return err_set_errno(err, place.trash, "open '%s/.trash'", place.path);
    *out = place;
    place = (struct place)PLACE_INIT;
    return 0;
}

void place_finish(struct place place)
{
    free(place.path);
    fd_close(place.top);
    fd_close(place.drafts);
    fd_close(place.trash);
}

int place_close_gate(const struct place *place, int operation, struct carrel_error *err)
{
    /* Opened anew: a flock belongs to the open file, and each holder needs its own. */
    AUTO(fd_close)
    int gate = openat(place->drafts, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (gate < 0)
        return err_set_errno(err, -errno, "open '%s/.new'", place->path);
    while (flock(gate, operation) < 0) {
        if (errno != EINTR)
            return err_set_errno(err, -errno, "lock '%s/.new'", place->path);
    }
    return fd_steal(&gate);
}

int place_unique(char name[static PLACE_NAME_MAX], struct carrel_error *err)
{
    uint64_t bits[2];

    if (getrandom(bits, sizeof(bits), 0) != (ssize_t)sizeof(bits))
        return err_set_errno(err, -errno, "getrandom");
    (void)snprintf(
            name, PLACE_NAME_MAX, "%016jx%016jx", (uintmax_t)bits[0], (uintmax_t)bits[1]);
    return 0;
}

const char *place_end_name(enum place_end end)
{
    static const char *const names[] = {
        [PLACE_UNDONE] = "undone",
        [PLACE_DISCARDED] = "discarded",
        [PLACE_FILES] = "files",
    };
    return names[end];
}

void place_id(const char *task, const char *run, char path[static PLACE_ID_MAX])
{
    (void)snprintf(path, PLACE_ID_MAX, "%s/%s", task, run);
}

/* Whoever opens a workspace in runs/ has that workspace beside it: runs/ alone is unused. */
static bool is_unused(int dir)
{
    bool is_used = false;
    int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = fd < 0 ? NULL : fdopendir(fd);

    if (!stream) {
        fd_close(fd);
        return false;
    }
    for (struct dirent *entry; !is_used && (entry = readdir(stream));)
        is_used = strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
                  strcmp(entry->d_name, "runs") != 0;
    (void)closedir(stream);
    return !is_used;
}

void place_prune_task(const struct place *place, const char *task)
{
    AUTO(fd_close)
    int dir = openat(place->top, task, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (dir < 0 || !is_unused(dir))
        return;
    (void)unlinkat(dir, "runs", AT_REMOVEDIR); /* something is in it: both stay */
    (void)unlinkat(place->top, task, AT_REMOVEDIR);
}
