/*
 * file_unpack.c - entries of a tar become requests for files.
 *
 * Names were checked when they were read; requests stay below one directory and follow no link.
 * Permissions and times of directories are set last, because a read-only directory could not
 * be filled.
 */
#include "runtime/file_unpack.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "files/data.h"
#include "files/walk.h"
#include "runtime/files.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHUNK (1U << 17)

void file_temporary_name(char name[static 32])
{
    uint64_t number = 0;

    (void)getrandom(&number, sizeof(number), 0); /* an existing name is refused: O_EXCL */
    (void)snprintf(name, 32, ".carrel-%016" PRIx64, number);
}

struct made {
    char *path;
    mode_t mode;
    struct timespec mtime;
};

/* What is unpacked, and the directories that are finished last. */
struct work {
    struct file_unpack *how;
    struct made *dirs;
    size_t n, room;
    char chunk[CHUNK];
};

static int ask(struct work *work, enum file_op op, const char *path, const char *other,
        struct carrel_error *err)
{
    struct file_request request = FILE_REQUEST_INIT;
    struct file_answer answer = FILE_ANSWER_INIT;

    request.op = op;
    request.dir = work->how->top;
    request.path = path;
    request.other = other;
    request.mode = 0755;
    return work->how->ops->ask(work->how, &request, &answer, err);
}

static int open_inside(
        struct work *work, const char *path, int flags, mode_t mode, struct carrel_error *err)
{
    struct file_request request = FILE_REQUEST_INIT;
    struct file_answer answer = FILE_ANSWER_INIT;

    request.op = FILE_OPEN;
    request.dir = work->how->top;
    request.path = path;
    request.flags = flags;
    request.mode = mode;
    int r = work->how->ops->ask(work->how, &request, &answer, err);
    return r < 0 ? r : answer.fd;
}

/* An existing directory is fine: 1. */
static int make_dir(struct work *work, const char *path, struct carrel_error *err)
{
    int r = ask(work, FILE_MAKE_DIR, path, NULL, err);
    if (r != -EEXIST)
        return r;
    int fd = open_inside(work, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, err);
    fd_close(fd < 0 ? -1 : fd);
    return fd < 0 ? fd : 1;
}

/* Archives need not name the directories above a file. */
static int make_parents(struct work *work, const char *path, struct carrel_error *err)
{
    char part[TAR_PATH_MAX + 1];

    (void)snprintf(part, sizeof(part), "%s", path);
    for (char *slash = strchr(part, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        int r = make_dir(work, part, err);
        if (r < 0)
            return r;
        *slash = '/';
    }
    return 0;
}

static int remember(struct work *work, const struct tar_entry *entry, struct carrel_error *err)
{
    if (work->n == work->room) {
        size_t room = work->room ? 2 * work->room : 64;
        struct made *dirs = realloc(work->dirs, room * sizeof(*dirs));
        if (!dirs)
            return err_set_errno(err, -ENOMEM, "unpack");
        work->dirs = dirs;
        work->room = room;
    }
    char *path = strdup(entry->path);
    if (!path)
        return err_set_errno(err, -ENOMEM, "unpack");
    work->dirs[work->n++] =
            (struct made){ .path = path, .mode = entry->mode, .mtime = entry->mtime };
    return 0;
}

/* A random name beside `path`. */
static int beside(const char *path, char out[static TAR_PATH_MAX + 1], struct carrel_error *err)
{
    const char *slash = strrchr(path, '/');
    char name[32];

    file_temporary_name(name);
    int n = snprintf(
            out, TAR_PATH_MAX + 1, "%.*s%s", slash ? (int)(slash + 1 - path) : 0, path, name);
    return n < 0 || n > TAR_PATH_MAX ? err_set_errno(err, -ENAMETOOLONG, "make a file") : 0;
}

/* Zeroes become holes: an archive must not fill a disk with zeroes. */
static int fill(
        struct work *work, int fd, const struct tar_entry *entry, struct carrel_error *err)
{
    uint64_t at = 0;
    ssize_t n;

    while ((n = work->how->ops->read(work->how, work->chunk, CHUNK, err)) > 0) {
        int r = data_put(fd, work->chunk, (size_t)n, at);
        if (r < 0)
            return err_set_errno(err, r, "write");
        at += (uint64_t)n;
    }
    if (n < 0)
        return (int)n;
    const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, entry->mtime };
    if (ftruncate(fd, (off_t)at) < 0 || fchmod(fd, entry->mode & 0777) < 0 ||
            futimens(fd, times) < 0)
        return err_set_errno(err, -errno, "write");
    work->how->count->bytes += at;
    return 0;
}

static int take_file(struct work *work, const struct tar_entry *entry, struct carrel_error *err)
{
    char temporary[TAR_PATH_MAX + 1];

    int r = beside(entry->path, temporary, err);
    if (r < 0)
        return r;
    AUTO(fd_close)
    int fd = open_inside(work, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600, err);
    if (fd < 0)
        return fd;
    r = fill(work, fd, entry, err);
    if (r == 0)
        r = ask(work, FILE_RENAME, temporary, entry->path, err);
    if (r < 0)
        (void)ask(work, FILE_REMOVE, temporary, NULL, NULL); /* it is incomplete */
    work->how->count->files += r == 0;
    return r;
}

static int take_link(struct work *work, enum file_op op, const char *path, const char *other,
        const char *existing, struct carrel_error *err)
{
    int r = ask(work, FILE_REMOVE, existing, NULL, err);

    if (r < 0 && r != -ENOENT)
        return r;
    r = ask(work, op, path, other, err);
    work->how->count->links += r == 0;
    return r;
}

static int take(struct work *work, const struct tar_entry *entry, struct carrel_error *err)
{
    int r = strcmp(entry->path, ".") == 0 ? 0 : make_parents(work, entry->path, err);

    if (r < 0)
        return r;
    switch (entry->kind) {
    case TAR_FILE:
        return take_file(work, entry, err);
    case TAR_DIRECTORY:
        if (strcmp(entry->path, ".") == 0)
            return 0; /* the target directory itself is not changed */
        r = make_dir(work, entry->path, err);
        if (r < 0)
            return r;
        work->how->count->directories++;
        return r == 1 && work->how->keeps_dirs ? 0 : remember(work, entry, err);
    case TAR_SYMLINK:
        return take_link(work, FILE_SYMLINK, entry->path, entry->target, entry->path, err);
    case TAR_HARDLINK:
        return take_link(work, FILE_LINK, entry->target, entry->path, entry->path, err);
    case TAR_FAILED:
        return err_set(err, -EPROTO, "the archive is of a tree that could not be read");
    case TAR_OTHER:
    default:
        work->how->count->skipped++;
        return 0;
    }
}

/* In reverse: deeper directories come later. */
static int finish_dirs(struct work *work, struct carrel_error *err)
{
    for (size_t i = work->n; i > 0; i--) {
        const struct made *made = &work->dirs[i - 1];
        const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, made->mtime };
        AUTO(fd_close)
        int fd = open_inside(work, made->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, err);
        if (fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP)
            continue; /* a later entry, or a program, put something else there */
        if (fd < 0)
            return fd;
        if (fchmod(fd, made->mode & 0777) < 0 || futimens(fd, times) < 0)
            return err_set_errno(err, -errno, "set permissions and times");
    }
    return 0;
}

static int take_all(struct work *work, struct carrel_error *err)
{
    struct tar_entry entry;
    char shown[300];
    int r;

    while ((r = work->how->ops->next(work->how, &entry, err)) > 0) {
        r = take(work, &entry, err);
        if (r < 0)
            return err_wrap(err, r, "'%s'",
                    str_escape(entry.path, strlen(entry.path), shown, sizeof(shown)));
    }
    return r < 0 ? r : finish_dirs(work, err);
}

int file_unpack(struct file_unpack *how, struct carrel_error *err)
{
    AUTO(free) struct work *work = calloc(1, sizeof(*work));

    if (!work)
        return err_set_errno(err, -ENOMEM, "unpack");
    work->how = how;
    int r = take_all(work, err);
    for (size_t i = 0; i < work->n; i++)
        free(work->dirs[i].path);
    free(work->dirs);
    return r;
}
