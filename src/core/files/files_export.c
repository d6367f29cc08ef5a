/* files_export.c - writes a tree of a sandbox as a tar. */
#include "base/auto.h"
#include "base/err.h"
#include "base/fd.h"
#include "core/files/files_tar.h"
#include "files/tar.h"
#include "files/walk.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#define SMALL (1U << 20) /* is copied first, and so may change once or twice */
#define CHUNK (1U << 17)

struct tar_sink {
    struct sink base;
    struct tar_writer *writer;
    size_t len;
    char path[TAR_PATH_MAX + 1]; /* of the current directory; "": the top */
};

static struct tar_sink *tar_of(struct sink *base)
{
    return container_of(base, struct tar_sink, base);
}

/* Returns the previous length of the path, for cut(). */
static int push(
        struct tar_sink *sink, const char *name, size_t *before, struct carrel_error *err)
{
    size_t len = strlen(name);

    *before = sink->len;
    if (sink->len + len + 2 > sizeof(sink->path))
        return err_set_errno(err, -ENAMETOOLONG, "add to the archive");
    if (sink->len > 0)
        sink->path[sink->len++] = '/';
    memcpy(sink->path + sink->len, name, len + 1);
    sink->len += len;
    return 0;
}

static void cut(struct tar_sink *sink, size_t len)
{
    sink->len = len;
    sink->path[len] = '\0';
}

static struct tar_entry entry_of(
        const struct tar_sink *sink, enum tar_kind kind, const struct stat *st)
{
    return (struct tar_entry){
        .kind = kind,
        .path = sink->path,
        .mode = st->st_mode & 0777,
        .mtime = st->st_mtim,
    };
}

static int enter(
        struct sink *base, const char *name, const struct stat *st, struct carrel_error *err)
{
    struct tar_sink *sink = tar_of(base);
    size_t before;

    int r = push(sink, name, &before, err);
    if (r < 0)
        return r;
    const struct tar_entry entry = entry_of(sink, TAR_DIRECTORY, st);
    r = tar_writer_add(sink->writer, &entry, err);
    if (r < 0)
        cut(sink, before);
    return r;
}

static int leave(struct sink *base, const struct stat *st, struct carrel_error *err)
{
    struct tar_sink *sink = tar_of(base);
    const char *slash = strrchr(sink->path, '/');

    (void)st;
    (void)err;
    cut(sink, slash ? (size_t)(slash - sink->path) : 0);
    return 0;
}

static int add_link(struct sink *base, const char *name, const char *target,
        const struct stat *st, struct carrel_error *err)
{
    struct tar_sink *sink = tar_of(base);
    size_t before;

    int r = push(sink, name, &before, err);
    if (r < 0)
        return r;
    struct tar_entry entry = entry_of(sink, TAR_SYMLINK, st);
    entry.target = target;
    r = tar_writer_add(sink->writer, &entry, err);
    cut(sink, before);
    return r;
}

/* Exactly as many bytes as the header says. */
static int add_data(struct tar_sink *sink, int fd, uint64_t bytes, struct carrel_error *err)
{
    AUTO(free) char *chunk = malloc(CHUNK);
    uint64_t at = 0;

    if (!chunk)
        return err_set_errno(err, -ENOMEM, "add to the archive");
    while (at < bytes) {
        size_t want = bytes - at < CHUNK ? (size_t)(bytes - at) : CHUNK;
        ssize_t n = pread(fd, chunk, want, (off_t)at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_set_errno(err, -errno, "read");
        if (n == 0)
            return err_set(err, -EBUSY, "it was truncated while it was read");
        int r = tar_writer_data(sink->writer, chunk, (size_t)n, err);
        if (r < 0)
            return r;
        at += (uint64_t)n;
    }
    return 0;
}

static int add_opened(struct tar_sink *sink, int fd, const struct stat *st, uint64_t bytes,
        struct carrel_error *err)
{
    struct tar_entry entry = entry_of(sink, TAR_FILE, st);

    entry.bytes = bytes;
    int r = tar_writer_add(sink->writer, &entry, err);
    return r < 0 ? r : add_data(sink, fd, bytes, err);
}

/* A small file is copied until it was stable; a large one is read once. */
static int add_small(
        struct tar_sink *sink, int fd, const struct stat *st, struct carrel_error *err)
{
    struct stat copied = { 0 };

    AUTO(fd_close) int copy = memfd_create("carrel-export", MFD_CLOEXEC);
    if (copy < 0)
        return err_set_errno(err, -errno, "memfd_create");
    int r = data_copy(fd, copy, &sink->base.data, err);
    if (r == 0 && fstat(copy, &copied) < 0)
        r = err_set_errno(err, -errno, "stat");
    return r < 0 ? r : add_opened(sink, copy, st, (uint64_t)copied.st_size, err);
}

static int add_large(struct tar_sink *sink, int fd, struct carrel_error *err)
{
    struct stat settled;

    int r = data_settle(fd, &settled, err);
    if (r == 0)
        r = data_spend(&sink->base.data, (uint64_t)settled.st_size, err);
    if (r == 0)
        r = add_opened(sink, fd, &settled, (uint64_t)settled.st_size, err);
    return r < 0 ? r : data_check_same(fd, &settled, err);
}

static int add_file(struct sink *base, const char *name, int fd, const struct stat *st,
        struct carrel_error *err)
{
    struct tar_sink *sink = tar_of(base);
    size_t before;

    int r = push(sink, name, &before, err);
    if (r < 0)
        return r;
    r = st->st_size <= SMALL ? add_small(sink, fd, st, err) : add_large(sink, fd, err);
    cut(sink, before);
    return r == -EBUSY ? err_wrap(err, r, "'carrel pause' would keep it stable") : r;
}

static const struct sink_ops ops = {
    .enter = enter,
    .leave = leave,
    .file = add_file,
    .link = add_link,
};

static const char *last_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash && slash[1] ? slash + 1 : path;
}

static int export_opened(struct tar_sink *sink, int fd, const char *path, struct walk *walk,
        struct carrel_error *err)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return err_set_errno(err, -errno, "stat");
    if (!S_ISDIR(st.st_mode))
        return walk_one(walk, last_name(path), fd, err);
    if (walk_is_made_up(fd))
        return err_set(
                err, -EINVAL, "the content of this directory is virtual, from the kernel");
    struct tar_entry top = entry_of(sink, TAR_DIRECTORY, &st);
    top.path = ".";
    int r = tar_writer_add(sink->writer, &top, err);
    return r < 0 ? r : walk_contents(walk, fd, err);
}

int files_export(struct file_access *access, const char *path, int out,
        const struct files_limits *limits, struct files_count *count, struct carrel_error *err)
{
    struct file_request request = FILE_REQUEST_INIT;
    struct file_answer answer = FILE_ANSWER_INIT;
    AUTO(tar_writer_free) struct tar_writer *writer = NULL;
    AUTO(free) struct tar_sink *sink = calloc(1, sizeof(*sink));
    AUTO(free) struct walk *walk = calloc(1, sizeof(*walk));

    if (!sink || !walk)
        return err_set_errno(err, -ENOMEM, "export");
    request.op = FILE_OPEN;
    request.path = path;
    int r = file_access_ask(access, &request, &answer, err);
    if (r < 0)
        return r;
    AUTO(fd_close) int fd = answer.fd;
    r = tar_writer_open(out, &writer, err);
    if (r < 0)
        return r;
    sink->base.ops = &ops;
    sink->writer = writer;
    *walk = walk_begin(&sink->base, count, limits);
    walk->keeps_links_in = true;
    r = file_access_outcome(access, export_opened(sink, fd, path, walk, err), err);
    return r < 0 ? r : tar_writer_finish(writer, err);
}
