/*
 * files_import.c - unpacks a tar into a sandbox.
 *
 * Names were checked when they were read; the sandbox resolves them: every request stays below
 * one directory and follows no link. Permissions and times of directories are set last, because
 * a read-only directory could not be filled.
 */
#include "archive/tar_apart.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "core/files/files_sink.h"
#include "core/files/files_tar.h"
#include "files/data.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define CHUNK (1U << 17)

struct made {
    char *path;
    mode_t mode;
    struct timespec mtime;
};

struct import {
    struct file_access *access;
    int top;
    struct tar_apart *tar;
    struct files_count *count;
    struct made *dirs;
    size_t n, room;
    char *chunk;
};

static int ask(struct import *import, enum file_op op, const char *path, const char *other,
        struct carrel_error *err)
{
    struct file_request request = FILE_REQUEST_INIT;
    struct file_answer answer = FILE_ANSWER_INIT;

    request.op = op;
    request.dir = import->top;
    request.path = path;
    request.other = other;
    request.mode = 0755;
    return file_access_ask(import->access, &request, &answer, err);
}

static int open_inside(struct import *import, const char *path, int flags, mode_t mode,
        struct carrel_error *err)
{
    struct file_request request = FILE_REQUEST_INIT;
    struct file_answer answer = FILE_ANSWER_INIT;

    request.op = FILE_OPEN;
    request.dir = import->top;
    request.path = path;
    request.flags = flags;
    request.mode = mode;
    int r = file_access_ask(import->access, &request, &answer, err);
    return r < 0 ? r : answer.fd;
}

/* An existing directory is fine. */
static int make_dir(struct import *import, const char *path, struct carrel_error *err)
{
    int r = ask(import, FILE_MAKE_DIR, path, NULL, err);
    if (r != -EEXIST)
        return r;
    int fd = open_inside(import, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, err);
    fd_close(fd < 0 ? -1 : fd);
    return fd < 0 ? fd : 0;
}

/* Archives need not name the directories above a file. */
static int make_parents(struct import *import, const char *path, struct carrel_error *err)
{
    char part[TAR_PATH_MAX + 1];

    (void)snprintf(part, sizeof(part), "%s", path);
    for (char *slash = strchr(part, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        int r = make_dir(import, part, err);
        if (r < 0)
            return r;
        *slash = '/';
    }
    return 0;
}

static int remember(
        struct import *import, const struct tar_entry *entry, struct carrel_error *err)
{
    if (import->n == import->room) {
        size_t room = import->room ? 2 * import->room : 64;
        struct made *dirs = realloc(import->dirs, room * sizeof(*dirs));
        if (!dirs)
            return err_set_errno(err, -ENOMEM, "import");
        import->dirs = dirs;
        import->room = room;
    }
    char *path = strdup(entry->path);
    if (!path)
        return err_set_errno(err, -ENOMEM, "import");
    import->dirs[import->n++] =
            (struct made){ .path = path, .mode = entry->mode, .mtime = entry->mtime };
    return 0;
}

/* A random name beside `path`. */
static int beside(const char *path, char out[static TAR_PATH_MAX + 1], struct carrel_error *err)
{
    const char *slash = strrchr(path, '/');
    char name[32];

    sink_temporary_name(name);
    int n = snprintf(
            out, TAR_PATH_MAX + 1, "%.*s%s", slash ? (int)(slash + 1 - path) : 0, path, name);
    return n < 0 || n > TAR_PATH_MAX ? err_set_errno(err, -ENAMETOOLONG, "make a file") : 0;
}

static bool is_zero(const char *data, size_t len)
{
    return len > 0 && data[0] == 0 && memcmp(data, data + 1, len - 1) == 0;
}

/* Zeroes become holes: an archive must not fill a disk with zeroes. */
static int fill(
        struct import *import, int fd, const struct tar_entry *entry, struct carrel_error *err)
{
    uint64_t at = 0;
    ssize_t n;

    while ((n = tar_apart_read(import->tar, import->chunk, CHUNK, err)) > 0) {
        if (!is_zero(import->chunk, (size_t)n)) {
            if (lseek(fd, (off_t)at, SEEK_SET) < 0)
                return err_set_errno(err, -errno, "write");
            int r = fd_write_all(fd, import->chunk, (size_t)n);
            if (r < 0)
                return err_set_errno(err, r, "write");
        }
        at += (uint64_t)n;
    }
    if (n < 0)
        return (int)n;
    const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, entry->mtime };
    if (ftruncate(fd, (off_t)at) < 0 || fchmod(fd, entry->mode & 0777) < 0 ||
            futimens(fd, times) < 0)
        return err_set_errno(err, -errno, "write");
    import->count->bytes += at;
    return 0;
}

static int take_file(
        struct import *import, const struct tar_entry *entry, struct carrel_error *err)
{
    char temporary[TAR_PATH_MAX + 1];

    int r = beside(entry->path, temporary, err);
    if (r < 0)
        return r;
    AUTO(fd_close)
    int fd =
            open_inside(import, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600, err);
    if (fd < 0)
        return fd;
    r = fill(import, fd, entry, err);
    if (r == 0)
        r = ask(import, FILE_RENAME, temporary, entry->path, err);
    if (r < 0)
        (void)ask(import, FILE_REMOVE, temporary, NULL, NULL); /* it is incomplete */
    import->count->files += r == 0;
    return r;
}

static int take_link(struct import *import, enum file_op op, const char *path,
        const char *other, const char *existing, struct carrel_error *err)
{
    int r = ask(import, FILE_REMOVE, existing, NULL, err);

    if (r < 0 && r != -ENOENT)
        return r;
    r = ask(import, op, path, other, err);
    import->count->links += r == 0;
    return r;
}

static int take(struct import *import, const struct tar_entry *entry, struct carrel_error *err)
{
    int r = strcmp(entry->path, ".") == 0 ? 0 : make_parents(import, entry->path, err);

    if (r < 0)
        return r;
    switch (entry->kind) {
    case TAR_FILE:
        return take_file(import, entry, err);
    case TAR_DIRECTORY:
        if (strcmp(entry->path, ".") == 0)
            return 0; /* the target directory itself is not changed */
        r = make_dir(import, entry->path, err);
        import->count->directories += r == 0;
        return r < 0 ? r : remember(import, entry, err);
    case TAR_SYMLINK:
        return take_link(import, FILE_SYMLINK, entry->path, entry->target, entry->path, err);
    case TAR_HARDLINK:
        return take_link(import, FILE_LINK, entry->target, entry->path, entry->path, err);
    case TAR_OTHER:
    case TAR_FAILED:
    default:
        import->count->skipped++;
        return 0;
    }
}

/* In reverse: deeper directories come later. */
static int finish_dirs(struct import *import, struct carrel_error *err)
{
    for (size_t i = import->n; i > 0; i--) {
        const struct made *made = &import->dirs[i - 1];
        const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, made->mtime };
        AUTO(fd_close)
        int fd = open_inside(import, made->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, err);
        if (fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP)
            continue; /* a later entry, or a program, put something else there */
        if (fd < 0)
            return fd;
        if (fchmod(fd, made->mode & 0777) < 0 || futimens(fd, times) < 0)
            return err_set_errno(err, -errno, "set permissions and times");
    }
    return 0;
}

static int take_all(struct import *import, struct carrel_error *err)
{
    struct tar_entry entry;
    char shown[300];
    int r;

    while ((r = tar_apart_next(import->tar, &entry, err)) > 0) {
        r = take(import, &entry, err);
        if (r < 0)
            return err_wrap(err, r, "'%s'",
                    str_escape(entry.path, strlen(entry.path), shown, sizeof(shown)));
    }
    return r < 0 ? r : finish_dirs(import, err);
}

int files_import(struct file_access *access, const char *path, int in,
        const struct files_limits *limits, struct files_count *count, struct carrel_error *err)
{
    const struct tar_limits tar_limits = {
        .entries = limits && limits->entries ? limits->entries : FILES_MAX_ENTRIES,
        .bytes = limits && limits->bytes ? limits->bytes : FILES_MAX_BYTES,
        .depth = FILES_MAX_DEPTH,
    };
    struct import import = { .access = access, .top = -1, .count = count };
    AUTO(tar_apart_free) struct tar_apart *tar = NULL;
    AUTO(free) char *chunk = malloc(CHUNK);

    if (!chunk)
        return err_set_errno(err, -ENOMEM, "import");
    AUTO(fd_close) int top = -1;
    struct file_request request = FILE_REQUEST_INIT;
    struct file_answer answer = FILE_ANSWER_INIT;
    request.op = FILE_OPEN;
    request.path = path;
    request.flags = O_RDONLY | O_DIRECTORY;
    int r = file_access_ask(access, &request, &answer, err);
    if (r < 0)
        return r;
    top = answer.fd;
    r = tar_apart_open(in, &tar_limits, &tar, err);
    if (r < 0)
        return r;
    import.top = top;
    import.tar = tar;
    import.chunk = chunk;
    r = take_all(&import, err);
    for (size_t i = 0; i < import.n; i++)
        free(import.dirs[i].path);
    free(import.dirs);
    return r;
}
