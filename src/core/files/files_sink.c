/*
 * files_sink.c - writes a tree, one entry after the other.
 *
 * A file is written unlinked, or under a random name, and gets its own name when it is
 * complete: a partial file is never visible, and an existing link is replaced, not followed.
 * How names are created, on the host or by a sandbox, is a table; all else is shared.
 */
#include "core/files/files_sink.h"
#include "base/err.h"
#include "base/fd.h"
#include "files/tar_plain.h"
#include "runtime/file_unpack.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define PERMISSIONS 0777 /* of what we create; set-uid and set-gid bits are dropped */

/* Operations on a name in a directory. */
struct name_ops {
    int (*make_dir)(
            struct tree_sink *sink, int dir, const char *name, struct carrel_error *err);
    int (*open_dir)(
            struct tree_sink *sink, int dir, const char *name, struct carrel_error *err);
    int (*create)(struct tree_sink *sink, int dir, const char *name, struct carrel_error *err);
    int (*symlink)(struct tree_sink *sink, int dir, const char *name, const char *target,
            struct carrel_error *err);
    int (*set_times)(struct tree_sink *sink, int dir, const char *name,
            const struct timespec times[2], struct carrel_error *err);
    int (*replace)(struct tree_sink *sink, int dir, const char *from, const char *to,
            struct carrel_error *err);
    /* The same for a file that create() made as `from`, or unlinked. */
    int (*settle)(struct tree_sink *sink, int dir, int fd, const char *from, const char *to,
            struct carrel_error *err);
    void (*remove)(struct tree_sink *sink, int dir, const char *name);
};

/* --- on the host --- */

static int host_make_dir(
        struct tree_sink *sink, int dir, const char *name, struct carrel_error *err)
{
    (void)sink;
    return mkdirat(dir, name, 0700) < 0 ? err_set_errno(err, -errno, "make directory") : 0;
}

static int host_open_dir(
        struct tree_sink *sink, int dir, const char *name, struct carrel_error *err)
{
    (void)sink;
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? err_set_errno(err, -errno, "open directory") : fd;
}

/* Unlinked, if the file system supports it: if we are killed, nothing is left. */
static int host_create(
        struct tree_sink *sink, int dir, const char *name, struct carrel_error *err)
{
    (void)sink;
    int fd = openat(dir, ".", O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600);
    if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL))
        fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    return fd < 0 ? err_set_errno(err, -errno, "make file") : fd;
}

static int host_symlink(struct tree_sink *sink, int dir, const char *name, const char *target,
        struct carrel_error *err)
{
    (void)sink;
    return symlinkat(target, dir, name) < 0 ? err_set_errno(err, -errno, "make link") : 0;
}

static int host_set_times(struct tree_sink *sink, int dir, const char *name,
        const struct timespec times[2], struct carrel_error *err)
{
    (void)sink;
    return utimensat(dir, name, times, AT_SYMLINK_NOFOLLOW) < 0
                   ? err_set_errno(err, -errno, "set times")
                   : 0;
}

/* A device or FIFO was put there for a purpose: /dev/null must not be replaced. */
static int host_replace(struct tree_sink *sink, int dir, const char *from, const char *to,
        struct carrel_error *err)
{
    struct stat st;

    (void)sink;
    if (fstatat(dir, to, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISREG(st.st_mode) &&
            !S_ISLNK(st.st_mode))
        return err_set(err, S_ISDIR(st.st_mode) ? -EISDIR : -EEXIST,
                "it exists on the host and is not a regular file, so it is not replaced");
    return renameat(dir, from, dir, to) < 0 ? err_set_errno(err, -errno, "rename") : 0;
}

static int host_settle(struct tree_sink *sink, int dir, int fd, const char *from,
        const char *to, struct carrel_error *err)
{
    char path[32];
    struct stat st;

    if (fstat(fd, &st) < 0)
        return err_set_errno(err, -errno, "stat");
    if (st.st_nlink == 0) {
        (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        if (linkat(AT_FDCWD, path, dir, to, AT_SYMLINK_FOLLOW) == 0)
            return 0;
        /* linkat() cannot replace an existing name; only a rename can. */
        if (errno != EEXIST || linkat(AT_FDCWD, path, dir, from, AT_SYMLINK_FOLLOW) < 0)
            return err_set_errno(err, -errno, "name the file");
    }
    return host_replace(sink, dir, from, to, err);
}

static void host_remove(struct tree_sink *sink, int dir, const char *name)
{
    (void)sink;
    (void)unlinkat(dir, name, 0); /* ours: the name is random */
}

static const struct name_ops host_ops = {
    .make_dir = host_make_dir,
    .open_dir = host_open_dir,
    .create = host_create,
    .symlink = host_symlink,
    .set_times = host_set_times,
    .replace = host_replace,
    .settle = host_settle,
    .remove = host_remove,
};

/* --- in a sandbox --- */

static int ask(struct tree_sink *sink, struct file_request request, enum file_op op, int dir,
        const char *name, struct carrel_error *err)
{
    struct file_answer answer = FILE_ANSWER_INIT;

    request.op = op;
    request.dir = dir;
    request.path = name;
    int r = file_access_ask(sink->access, &request, &answer, err);
    return r < 0 ? r : op == FILE_OPEN ? answer.fd : 0;
}

static int access_make_dir(
        struct tree_sink *sink, int dir, const char *name, struct carrel_error *err)
{
    struct file_request request = FILE_REQUEST_INIT;

    request.mode = 0700;
    return ask(sink, request, FILE_MAKE_DIR, dir, name, err);
}

static int access_open_dir(
        struct tree_sink *sink, int dir, const char *name, struct carrel_error *err)
{
    struct file_request request = FILE_REQUEST_INIT;

    request.flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW;
    return ask(sink, request, FILE_OPEN, dir, name, err);
}

static int access_create(
        struct tree_sink *sink, int dir, const char *name, struct carrel_error *err)
{
    struct file_request request = FILE_REQUEST_INIT;

    request.flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW;
    request.mode = 0600;
    return ask(sink, request, FILE_OPEN, dir, name, err);
}

static int access_symlink(struct tree_sink *sink, int dir, const char *name, const char *target,
        struct carrel_error *err)
{
    struct file_request request = FILE_REQUEST_INIT;

    request.other = target;
    return ask(sink, request, FILE_SYMLINK, dir, name, err);
}

static int access_set_times(struct tree_sink *sink, int dir, const char *name,
        const struct timespec times[2], struct carrel_error *err)
{
    struct file_request request = FILE_REQUEST_INIT;

    request.flags = FILE_NO_FOLLOW;
    memcpy(request.times, times, sizeof(request.times));
    return ask(sink, request, FILE_SET_TIMES, dir, name, err);
}

static int access_replace(struct tree_sink *sink, int dir, const char *from, const char *to,
        struct carrel_error *err)
{
    struct file_request request = FILE_REQUEST_INIT;

    request.other = to;
    return ask(sink, request, FILE_RENAME, dir, from, err);
}

static int access_settle(struct tree_sink *sink, int dir, int fd, const char *from,
        const char *to, struct carrel_error *err)
{
    (void)fd;
    return access_replace(sink, dir, from, to, err);
}

static void access_remove(struct tree_sink *sink, int dir, const char *name)
{
    (void)ask(sink, FILE_REQUEST_INIT, FILE_REMOVE, dir, name, NULL); /* as on the host */
}

static const struct name_ops access_ops = {
    .make_dir = access_make_dir,
    .open_dir = access_open_dir,
    .create = access_create,
    .symlink = access_symlink,
    .set_times = access_set_times,
    .replace = access_replace,
    .settle = access_settle,
    .remove = access_remove,
};

/* --- the same for both --- */

static struct tree_sink *tree_of(struct sink *base)
{
    return container_of(base, struct tree_sink, base);
}

static const struct name_ops *ops_of(const struct tree_sink *sink)
{
    return sink->access ? &access_ops : &host_ops;
}

static int top_of(const struct tree_sink *sink)
{
    return sink->dirs[sink->depth];
}

void sink_avoid(struct tree_sink *sink, int fd)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return; /* then the limit of depth stops it */
    sink->base.own_device = st.st_dev;
    sink->base.own_inode = st.st_ino;
}

static int enter(
        struct sink *base, const char *name, const struct stat *st, struct carrel_error *err)
{
    struct tree_sink *sink = tree_of(base);

    (void)st;
    int r = ops_of(sink)->make_dir(sink, top_of(sink), name, err);
    if (r < 0 && r != -EEXIST)
        return r;
    int fd = ops_of(sink)->open_dir(sink, top_of(sink), name, err);
    if (fd < 0)
        return fd;
    sink->depth++;
    sink->dirs[sink->depth] = fd;
    sink->is_new[sink->depth] = r == 0;
    if (sink->depth == 1)
        sink_avoid(sink, fd);
    return 0;
}

static void times_of(const struct stat *st, struct timespec times[static 2])
{
    times[0] = st->st_atim;
    times[1] = st->st_mtim;
}

/* Last: a read-only directory could not be filled. An existing directory is not changed. */
static int leave(struct sink *base, const struct stat *st, struct carrel_error *err)
{
    struct tree_sink *sink = tree_of(base);
    struct timespec times[2];

    times_of(st, times);
    AUTO(fd_close) int fd = fd_steal(&sink->dirs[sink->depth]);
    bool is_new = sink->is_new[sink->depth];
    sink->depth--;
    if (is_new && (fchmod(fd, st->st_mode & PERMISSIONS) < 0 || futimens(fd, times) < 0))
        return err_set_errno(err, -errno, "set permissions and times");
    return 0;
}

/* Where the bytes of a file come from. */
struct source {
    int fd;                /* a file, or without `st` a stream */
    struct tar_plain *tar; /* NULL: the descriptor */
    const struct stat *st;
};

static int copy_tar(struct tar_plain *tar, int out, struct carrel_error *err)
{
    char chunk[1U << 16];
    uint64_t at = 0;
    ssize_t n;

    while ((n = tar_plain_read(tar, chunk, sizeof(chunk), err)) > 0) {
        int r = data_put(out, chunk, (size_t)n, at);
        if (r < 0)
            return err_set_errno(err, r, "write");
        at += (uint64_t)n;
    }
    if (n < 0)
        return (int)n;
    return ftruncate(out, (off_t)at) < 0 ? err_set_errno(err, -errno, "write") : 0;
}

static int fill(
        struct tree_sink *sink, const struct source *source, int out, struct carrel_error *err)
{
    const struct stat *st = source->st;
    struct timespec times[2];

    if (!st) {
        int r = data_pump(source->fd, out, &sink->base.data, err);
        return r == 0 && fchmod(out, 0644) < 0 ? err_set_errno(err, -errno, "set permissions")
                                               : r;
    }
    times_of(st, times);
    int r = source->tar ? copy_tar(source->tar, out, err)
                        : data_copy(source->fd, out, &sink->base.data, err);
    if (r == 0 && (fchmod(out, st->st_mode & PERMISSIONS) < 0 || futimens(out, times) < 0))
        r = err_set_errno(err, -errno, "set permissions and times");
    return r;
}

/* Removes the random name from the message: the walk names the file. */
static int hide_temporary(const char *temporary, int code, struct carrel_error *err)
{
    return err && strstr(err->message, temporary) ? err_set_errno(err, code, "make file")
                                                  : code;
}

static int put(struct tree_sink *sink, const char *name, const struct source *source,
        struct carrel_error *err)
{
    const struct name_ops *ops = ops_of(sink);
    char temporary[32];

    file_temporary_name(temporary);
    AUTO(fd_close) int out = ops->create(sink, top_of(sink), temporary, err);
    if (out < 0)
        return hide_temporary(temporary, out, err);
    int r = fill(sink, source, out, err);
    if (r == 0)
        r = ops->settle(sink, top_of(sink), out, temporary, name, err);
    if (r < 0)
        ops->remove(sink, top_of(sink), temporary);
    return r;
}

static int file(struct sink *base, const char *name, int fd, const struct stat *st,
        struct carrel_error *err)
{
    const struct source source = { .fd = fd, .st = st };

    return put(tree_of(base), name, &source, err);
}

int sink_stream(struct tree_sink *sink, const char *name, int in, struct carrel_error *err)
{
    const struct source source = { .fd = in };

    return put(sink, name, &source, err);
}

int sink_tar(struct tree_sink *sink, const char *name, struct tar_plain *tar,
        const struct stat *st, struct carrel_error *err)
{
    const struct source source = { .fd = -1, .tar = tar, .st = st };

    return put(sink, name, &source, err);
}

static int take_link(struct sink *base, const char *name, const char *target,
        const struct stat *st, struct carrel_error *err)
{
    struct tree_sink *sink = tree_of(base);
    const struct name_ops *ops = ops_of(sink);
    struct timespec times[2];
    char temporary[32];

    times_of(st, times);
    file_temporary_name(temporary);
    int r = ops->symlink(sink, top_of(sink), temporary, target, err);
    if (r < 0)
        return hide_temporary(temporary, r, err);
    r = ops->set_times(sink, top_of(sink), temporary, times, err);
    if (r == 0)
        r = ops->replace(sink, top_of(sink), temporary, name, err);
    if (r < 0)
        ops->remove(sink, top_of(sink), temporary);
    return r;
}

static const struct sink_ops ops = {
    .enter = enter,
    .leave = leave,
    .file = file,
    .link = take_link,
};

void sink_to_host(struct tree_sink *sink, int top)
{
    sink_to_access(sink, NULL, top);
}

void sink_to_access(struct tree_sink *sink, struct file_access *access, int top)
{
    sink->base = (struct sink){ .ops = &ops };
    sink->access = access;
    sink->depth = 0;
    sink->dirs[0] = top;
}

void sink_finish(struct tree_sink *sink)
{
    for (; sink->depth > 0; sink->depth--)
        fd_close(fd_steal(&sink->dirs[sink->depth]));
}
