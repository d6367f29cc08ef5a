/* file.c - finds and reads policy files; every check uses the descriptor. */
#include "policy/file.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/named.h"
#include "policy/node.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define OPEN_FLAGS                                                                             \
    (O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK) /* a FIFO must not block us                 \
                                                    */

/* Reads an open file; `name` is not copied. */
static int read_open(struct arena *arena, int fd, const struct stat *st, const char *name,
        struct file *out, struct carrel_error *err)
{
    if (!S_ISREG(st->st_mode))
        return err_set(err, -EINVAL, "%s: a policy must be a regular file", name);
    if (st->st_size > NODE_BYTES_MAX)
        return err_set(err, -EFBIG, "%s: is larger than %u bytes", name, NODE_BYTES_MAX);
    size_t size = (size_t)st->st_size;
    char *text = arena_alloc(arena, size + 1);
    char *kept = arena_copy(arena, name, strlen(name));
    if (!text || !kept)
        return err_set_errno(err, -ENOMEM, "read '%s'", name);
    ssize_t n = fd_read_all(fd, text, size + 1);
    if (n < 0)
        return err_set_errno(err, (int)n, "read '%s'", name);
    if ((size_t)n > size)
        return err_set(err, -EAGAIN, "%s: changed while it was read", name);
    *out = (struct file){ .name = kept, .text = text, .len = (size_t)n };
    return 1;
}

/*
 * Translates a failed open: 0 if the file does not exist. If a directory of the path cannot be
 * entered, the caller has no file there either; a file that can be reached counts as existing.
 */
static int why_not_open(int dir, const char *path, const char *name, struct carrel_error *err)
{
    int code = -errno;

    if (code == -ENOENT || code == -ENOTDIR)
        return 0;
    if (code == -ELOOP)
        return err_set(
                err, code, "%s: is a symbolic link; a policy must be a regular file", name);
    if (code == -EACCES) {
        AUTO(fd_close) int reached = openat(dir, path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        if (reached < 0 && errno == EACCES)
            return 0;
    }
    return err_set_errno(err, code, "open '%s'", name);
}

int file_read_named(
        struct arena *arena, const char *path, struct file *out, struct carrel_error *err)
{
    struct stat st;

    AUTO(fd_close) int fd = named_open(path, NAMED_FILE, err);
    if (fd < 0)
        return err_wrap(err, fd, "policy");
    if (fstat(fd, &st) < 0)
        return err_set_errno(err, -errno, "stat '%s'", path);
    int r = read_open(arena, fd, &st, path, out, err);
    return r < 0 ? r : 0;
}

/* ---- of a repository ---- */

/*
 * Another user may put a file into a directory above ours, such as /tmp. It could not widen
 * anything, but it could stop every run. The owner of the directory is accepted, since that
 * user could stop runs in any case.
 */
static int check_repository_owner(
        int dir, const struct stat *st, const char *name, struct carrel_error *err)
{
    struct stat top;

    if (st->st_uid == geteuid() || st->st_uid == 0)
        return 0;
    if (fstat(dir, &top) == 0 && top.st_uid == st->st_uid)
        return 0;
    return err_set(err, -EPERM,
            "%s: belongs to another user (%u); name it with --policy to vouch for it, or "
            "use --policy none",
            name, (unsigned)st->st_uid);
}

static int read_repository(struct arena *arena, int dir, const char *rel, struct file *out,
        struct carrel_error *err)
{
    const struct open_how how = {
        .flags = OPEN_FLAGS,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };
    char top[PATH_MAX];
    char name[PATH_MAX + 64];
    struct stat st;

    int r = named_path(dir, top, sizeof(top)); /* for messages */
    if (r < 0)
        return err_set_errno(err, r, "the directory of '%s'", rel);
    (void)snprintf(name, sizeof(name), "%s/%s", strcmp(top, "/") == 0 ? "" : top, rel);
    AUTO(fd_close) int fd = (int)syscall(SYS_openat2, dir, rel, &how, sizeof(how));
    if (fd < 0)
        return why_not_open(dir, rel, name, err);
    if (fstat(fd, &st) < 0)
        return err_set_errno(err, -errno, "stat '%s'", name);
    r = check_repository_owner(dir, &st, name, err);
    return r < 0 ? r : read_open(arena, fd, &st, name, out, err);
}

/* Whether the name exists; a cheap test before the careful open. */
static bool is_there(int dir, const char *rel)
{
    struct stat st;

    return fstatat(dir, rel, &st, AT_SYMLINK_NOFOLLOW) == 0 || errno == ELOOP;
}

/* Looks in one directory; *is_past_root becomes true at the nearest one with .git. */
static int look_in(struct arena *arena, int dir, bool *is_past_root, struct file *out,
        struct carrel_error *err)
{
    static const char suggest[] = "carrel.yaml";
    static const char beside_root[] = "configs/profiles/default.yaml";
    int r = is_there(dir, suggest) ? read_repository(arena, dir, suggest, out, err) : 0;

    if (r != 0 || *is_past_root || !is_there(dir, ".git"))
        return r;
    *is_past_root = true;
    return is_there(dir, beside_root) ? read_repository(arena, dir, beside_root, out, err) : 0;
}

/*
 * From the directory upwards, each one from the descriptor of the one before: by their names
 * they could lead elsewhere by now. Nothing is looked for above a directory that the caller
 * cannot enter.
 */
int file_find_repository(
        struct arena *arena, const char *cwd, struct file *out, struct carrel_error *err)
{
    struct named_id last = { 0 };
    bool is_past_root = false;
    struct stat st;

    AUTO(fd_close) int dir = open(cwd ? cwd : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return err_set_errno(err, -errno, "current directory");
    while (fstat(dir, &st) == 0 && !named_id_is(&last, &st)) { /* the top is its own parent */
        int r = look_in(arena, dir, &is_past_root, out, err);
        if (r != 0)
            return r;
        last = named_id_of(&st);
        int above = openat(dir, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (above < 0 && errno != EACCES && errno != ENOENT)
            return err_set_errno(err, -errno, "the directory above");
        if (above < 0)
            return 0;
        fd_close(dir);
        dir = above;
    }
    return 0;
}

/* ---- of the user and of the system ---- */

int file_read_user(
        struct arena *arena, const char *path, struct file *out, struct carrel_error *err)
{
    struct stat st;

    AUTO(fd_close) int fd = open(path, OPEN_FLAGS | O_NOFOLLOW);
    if (fd < 0)
        return why_not_open(AT_FDCWD, path, path, err);
    if (fstat(fd, &st) < 0)
        return err_set_errno(err, -errno, "stat '%s'", path);
    if (st.st_uid != geteuid() && st.st_uid != 0)
        return err_set(
                err, -EPERM, "%s: belongs to another user (%u)", path, (unsigned)st.st_uid);
    if (st.st_mode & S_IWOTH)
        return err_set(
                err, -EPERM, "%s: is writable by all users; run 'chmod o-w' first", path);
    return read_open(arena, fd, &st, path, out, err);
}

/* Only root can have written it. */
static int check_roots_own(
        const struct stat *st, const char *name, const char *what, struct carrel_error *err)
{
    if (st->st_uid != 0)
        return err_set(err, -EPERM, "%s: %s must belong to root, not to user %u", name, what,
                (unsigned)st->st_uid);
    if (st->st_mode & (S_IWGRP | S_IWOTH))
        return err_set(err, -EPERM, "%s: %s can be written by others than root; 'chmod go-w'",
                name, what);
    return 0;
}

int file_read_system(
        struct arena *arena, const char *path, struct file *out, struct carrel_error *err)
{
    const char *slash = strrchr(path, '/');
    char top[PATH_MAX];
    struct stat st;

    if (!slash || slash == path || (size_t)(slash - path) >= sizeof(top))
        return err_set(err, -EINVAL, "'%s' is not the path of a system policy", path);
    memcpy(top, path, (size_t)(slash - path));
    top[slash - path] = '\0';
    AUTO(fd_close) int dir = open(top, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0 && (errno == ENOENT || errno == ENOTDIR))
        return 0;
    if (dir < 0 || fstat(dir, &st) < 0)
        return err_set_errno(err, -errno, "open '%s'", top);
    AUTO(fd_close) int fd = openat(dir, slash + 1, OPEN_FLAGS | O_NOFOLLOW);
    if (fd < 0 && errno == EACCES)
        return err_set_errno(err, -EACCES, "open '%s'", path);
    if (fd < 0)
        return why_not_open(dir, slash + 1, path, err);
    int r = check_roots_own(&st, path, "its directory", err);
    if (r < 0)
        return r;
    if (fstat(fd, &st) < 0)
        return err_set_errno(err, -errno, "stat '%s'", path);
    r = check_roots_own(&st, path, "the system's policy", err);
    return r < 0 ? r : read_open(arena, fd, &st, path, out, err);
}
