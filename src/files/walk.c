/* walk.c - walks a directory tree that may change concurrently. */
#include "files/walk.h"
#include "base/auto.h"
#include "base/dir.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#define ATTEMPTS 3 /* at a name that changes its type at each look */

struct walk walk_begin(
        struct sink *sink, struct files_count *count, const struct files_limits *limits)
{
    sink->data.max = limits && limits->bytes ? limits->bytes : FILES_MAX_BYTES;
    return (struct walk){
        .sink = sink,
        .count = count,
        .max_entries = limits && limits->entries ? limits->entries : FILES_MAX_ENTRIES,
    };
}

/* Adds the path of the failure to the message, once. */
static int failed_at(struct walk *walk, int code, struct carrel_error *err)
{
    char shown[300];

    if (walk->has_failed || walk->len == 0)
        return code;
    walk->has_failed = true;
    return err_wrap(err, code, "'%s'", str_escape(walk->at, walk->len, shown, sizeof(shown)));
}

static int failed(struct walk *walk, int code, const char *what, struct carrel_error *err)
{
    return failed_at(walk, err_set_errno(err, code, "%s", what), err);
}

/* Returns the previous length of the path. */
static size_t push(struct walk *walk, const char *name)
{
    const size_t before = walk->len;
    size_t len = strlen(name);

    if (len + 2 > sizeof(walk->at) - before)
        return before; /* affects only messages */
    if (before > 0)
        walk->at[walk->len++] = '/';
    memcpy(walk->at + walk->len, name, len);
    walk->len += len;
    return before;
}

/*
 * A name after "..", or after another name, may be a link itself. So ".." is accepted only at
 * the beginning, where it applies to real directories; names after it lead through links that
 * obey the same rule.
 */
bool walk_is_link_inside(const char *target, unsigned depth)
{
    bool has_name = false;

    if (target[0] == '/' || target[0] == '\0')
        return false;
    while (*target) {
        size_t len = strcspn(target, "/");
        bool is_up = len == 2 && target[0] == '.' && target[1] == '.';
        if (is_up && (has_name || depth == 0))
            return false;
        if (is_up)
            depth--;
        else if (len > 0 && !(len == 1 && target[0] == '.'))
            has_name = true;
        target += len;
        target += strspn(target, "/");
    }
    return true;
}

static int open_name(int dir, const char *name, int flags)
{
    const struct open_how how = {
        .flags = (uint64_t)(unsigned)(O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY |
                                      O_CLOEXEC | flags),
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };

    int fd = (int)syscall(SYS_openat2, dir, name, &how, sizeof(how));
    return fd < 0 ? -errno : fd;
}

bool walk_is_made_up(int fd)
{
    struct statfs fs;

    if (fstatfs(fd, &fs) < 0)
        return false;
    switch ((unsigned long)fs.f_type) {
    case PROC_SUPER_MAGIC:
    case SYSFS_MAGIC:
    case DEVPTS_SUPER_MAGIC:
    case CGROUP_SUPER_MAGIC:
    case CGROUP2_SUPER_MAGIC:
    case DEBUGFS_MAGIC:
    case TRACEFS_MAGIC:
        return true;
    default:
        return false;
    }
}

static int take_link(struct walk *walk, int dir, const char *name, const struct stat *st,
        struct carrel_error *err)
{
    char target[PATH_MAX];

    ssize_t len = readlinkat(dir, name, target, sizeof(target));
    if (len < 0)
        return -errno;
    if ((size_t)len >= sizeof(target))
        return -ENAMETOOLONG;
    target[len] = '\0';
    if (walk->keeps_links_in && !walk_is_link_inside(target, walk->depth - walk->top)) {
        walk->count->stray_links++;
        return 0;
    }
    int r = walk->sink->ops->link(walk->sink, name, target, st, err);
    if (r < 0)
        return r;
    walk->count->links++;
    return 0;
}

static int skip(struct walk *walk, const char *name, struct carrel_error *err)
{
    walk->count->skipped++;
    return walk->sink->ops->other ? walk->sink->ops->other(walk->sink, name, err) : 0;
}

static int take_directory(struct walk *walk, const char *name, int fd, const struct stat *st,
        struct carrel_error *err)
{
    if (walk_is_made_up(fd))
        return skip(walk, name, err);
    if (st->st_dev == walk->sink->own_device && st->st_ino == walk->sink->own_inode)
        return 0;
    if (walk->depth >= FILES_MAX_DEPTH)
        return err_set(err, -ELOOP, "it is deeper than %d directories", FILES_MAX_DEPTH);
    int r = walk->sink->ops->enter(walk->sink, name, st, err);
    if (r < 0)
        return r;
    walk->count->directories++;
    walk->depth++;
    r = walk_contents(walk, fd, err);
    walk->depth--;
    int left = walk->sink->ops->leave(walk->sink, st, r < 0 ? NULL : err);
    return r < 0 ? r : left;
}

static int take_file(struct walk *walk, const char *name, int fd, const struct stat *st,
        struct carrel_error *err)
{
    uint64_t used = walk->sink->data.used;

    int r = walk->sink->ops->file(walk->sink, name, fd, st, err);
    if (r < 0)
        return r;
    walk->count->files++;
    walk->count->bytes += walk->sink->data.used - used;
    return 0;
}

/* 1: taken or skipped; 0: its type has changed; negative: failed. */
static int take_opened(struct walk *walk, const char *name, int fd, struct carrel_error *err)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return err_set_errno(err, -errno, "stat");
    if (S_ISDIR(st.st_mode)) {
        int r = take_directory(walk, name, fd, &st, err);
        return r < 0 ? r : 1;
    }
    if (!S_ISREG(st.st_mode))
        return 0;
    int r = take_file(walk, name, fd, &st, err);
    return r < 0 ? r : 1;
}

/* As take_opened(), for a name. */
static int take_name(struct walk *walk, int dir, const char *name, struct carrel_error *err)
{
    struct stat st;

    *err = (struct carrel_error){ 0 };
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 1
                               : err_set_errno(err, -errno, "stat"); /* it was removed: fine */
    if (S_ISLNK(st.st_mode)) {
        int r = take_link(walk, dir, name, &st, err);
        if (r == -EINVAL || r == -ENOENT)
            return 0; /* it was one */
        if (r < 0 && !err->message[0])
            return err_set_errno(err, r, "read link");
        return r < 0 ? r : 1;
    }
    if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) {
        int r = skip(walk, name, err);
        return r < 0 ? r : 1;
    }
    AUTO(fd_close) int fd = open_name(dir, name, S_ISDIR(st.st_mode) ? O_DIRECTORY : 0);
    if (fd == -ELOOP || fd == -ENOTDIR || fd == -ENXIO || fd == -ENOENT || fd == -EAGAIN)
        return 0;
    if (fd < 0)
        return err_set_errno(err, fd, "open");
    return take_opened(walk, name, fd, err);
}

static int take_entry(struct walk *walk, int dir, const char *name, struct carrel_error *err)
{
    const struct files_count *count = walk->count;
    struct carrel_error own = { 0 };
    const size_t before = push(walk, name);
    int r = 0;

    if (!path_is_name(name))
        r = err_set(&own, -EPROTO, "this is no name of a file");
    else if (count->files + count->directories + count->links + count->skipped +
                     count->stray_links >=
             walk->max_entries)
        r = err_set(
                &own, -EFBIG, "these are more than %ju entries", (uintmax_t)walk->max_entries);
    for (int i = 0; i < ATTEMPTS && r == 0; i++)
        r = take_name(walk, dir, name, &own);
    if (r == 0)
        r = err_set(&own, -EBUSY, "it was something else at each look");
    if (r < 0) {
        if (err)
            *err = own;
        (void)failed_at(walk, r, err);
    }
    walk->len = before;
    return r < 0 ? r : 0;
}

int walk_contents(struct walk *walk, int fd, struct carrel_error *err)
{
    int own = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (own < 0)
        return failed(walk, -errno, "read", err);
    AUTO(dir_close) DIR *dir = fdopendir(own);
    if (!dir) {
        int code = -errno;
        fd_close(own);
        return failed(walk, code, "read", err);
    }
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(dir);
        if (!entry && errno)
            return failed(walk, -errno, "read", err);
        if (!entry)
            return 0;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        int r = take_entry(walk, own, entry->d_name, err);
        if (r < 0)
            return r;
    }
}

int walk_one(struct walk *walk, const char *name, int fd, struct carrel_error *err)
{
    const size_t before = push(walk, name);

    walk->top = 1;
    int r = take_opened(walk, name, fd, err);
    if (r == 0)
        r = err_set(err, -EINVAL, "it is neither a file nor a directory");
    walk->len = before;
    return r < 0 ? r : 0;
}
