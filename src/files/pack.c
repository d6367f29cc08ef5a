/* pack.c - the sink that writes a tar. */
#include "files/pack.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/fd.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SMALL (1U << 20) /* is copied first, and so may change once or twice */
#define CHUNK (1U << 17)

static struct pack *pack_of(struct sink *base)
{
    return container_of(base, struct pack, base);
}

/* Returns the previous length of the path, for cut(). */
static int push(struct pack *pack, const char *name, size_t *before, struct carrel_error *err)
{
    size_t len = strlen(name);

    *before = pack->len;
    if (pack->len + len + 2 > sizeof(pack->path))
        return err_set_errno(err, -ENAMETOOLONG, "add to the archive");
    if (pack->len > 0)
        pack->path[pack->len++] = '/';
    memcpy(pack->path + pack->len, name, len + 1);
    pack->len += len;
    return 0;
}

static void cut(struct pack *pack, size_t len)
{
    pack->len = len;
    pack->path[len] = '\0';
}

static struct tar_entry entry_of(
        const struct pack *pack, enum tar_kind kind, const struct stat *st)
{
    return (struct tar_entry){
        .kind = kind,
        .path = pack->path,
        .mode = st->st_mode & 0777,
        .mtime = st->st_mtim,
    };
}

static int enter(
        struct sink *base, const char *name, const struct stat *st, struct carrel_error *err)
{
    struct pack *pack = pack_of(base);
    size_t before;

    int r = push(pack, name, &before, err);
    if (r < 0)
        return r;
    const struct tar_entry entry = entry_of(pack, TAR_DIRECTORY, st);
    r = tar_writer_add(pack->writer, &entry, err);
    if (r < 0)
        cut(pack, before);
    return r;
}

static int leave(struct sink *base, const struct stat *st, struct carrel_error *err)
{
    struct pack *pack = pack_of(base);
    const char *slash = strrchr(pack->path, '/');

    (void)st;
    (void)err;
    cut(pack, slash ? (size_t)(slash - pack->path) : 0);
    return 0;
}

static int add_link(struct sink *base, const char *name, const char *target,
        const struct stat *st, struct carrel_error *err)
{
    struct pack *pack = pack_of(base);
    size_t before;

    int r = push(pack, name, &before, err);
    if (r < 0)
        return r;
    struct tar_entry entry = entry_of(pack, TAR_SYMLINK, st);
    entry.target = target;
    r = tar_writer_add(pack->writer, &entry, err);
    cut(pack, before);
    return r;
}

/* Exactly as many bytes as the header says. */
static int add_data(struct pack *pack, int fd, uint64_t bytes, struct carrel_error *err)
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
        int r = tar_writer_data(pack->writer, chunk, (size_t)n, err);
        if (r < 0)
            return r;
        at += (uint64_t)n;
    }
    return 0;
}

static int add_opened(struct pack *pack, int fd, const struct stat *st, uint64_t bytes,
        struct carrel_error *err)
{
    struct tar_entry entry = entry_of(pack, TAR_FILE, st);

    entry.bytes = bytes;
    int r = tar_writer_add(pack->writer, &entry, err);
    return r < 0 ? r : add_data(pack, fd, bytes, err);
}

/* A small file is copied until it was stable; a large one is read once. */
static int add_small(struct pack *pack, int fd, const struct stat *st, struct carrel_error *err)
{
    struct stat copied = { 0 };

    AUTO(fd_close) int copy = memfd_create("carrel-pack", MFD_CLOEXEC);
    if (copy < 0)
        return err_set_errno(err, -errno, "memfd_create");
    int r = data_copy(fd, copy, &pack->base.data, err);
    if (r == 0 && fstat(copy, &copied) < 0)
        r = err_set_errno(err, -errno, "stat");
    return r < 0 ? r : add_opened(pack, copy, st, (uint64_t)copied.st_size, err);
}

static int add_large(struct pack *pack, int fd, struct carrel_error *err)
{
    struct stat settled;

    int r = data_settle(fd, &settled, err);
    if (r == 0)
        r = data_spend(&pack->base.data, (uint64_t)settled.st_size, err);
    if (r == 0)
        r = add_opened(pack, fd, &settled, (uint64_t)settled.st_size, err);
    return r < 0 ? r : data_check_same(fd, &settled, err);
}

static int add_file(struct sink *base, const char *name, int fd, const struct stat *st,
        struct carrel_error *err)
{
    struct pack *pack = pack_of(base);
    size_t before;

    int r = push(pack, name, &before, err);
    if (r < 0)
        return r;
    r = st->st_size <= SMALL ? add_small(pack, fd, st, err) : add_large(pack, fd, err);
    cut(pack, before);
    return r == -EBUSY ? err_wrap(err, r, "'carrel pause' would keep it stable") : r;
}

static int add_other(struct sink *base, const char *name, struct carrel_error *err)
{
    struct pack *pack = pack_of(base);
    size_t before;

    int r = pack->others == PACK_OTHERS_NOT ? 0 : push(pack, name, &before, err);
    if (r < 0 || pack->others == PACK_OTHERS_NOT)
        return r;
    const struct tar_entry entry = { .kind = TAR_OTHER, .path = pack->path };
    r = tar_writer_add(pack->writer, &entry, err);
    cut(pack, before);
    return r;
}

static const struct sink_ops ops = {
    .enter = enter,
    .leave = leave,
    .file = add_file,
    .link = add_link,
    .other = add_other,
};

void pack_init(struct pack *pack, struct tar_writer *writer, enum pack_others others)
{
    pack->base = (struct sink){ .ops = &ops };
    pack->writer = writer;
    pack->others = others;
    cut(pack, 0);
}

int pack_opened(struct pack *pack, int fd, const char *name, struct walk *walk,
        struct carrel_error *err)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return err_set_errno(err, -errno, "stat");
    if (!S_ISDIR(st.st_mode))
        return walk_one(walk, name, fd, err);
    if (walk_is_made_up(fd))
        return err_set(
                err, -EINVAL, "the content of this directory is virtual, from the kernel");
    struct tar_entry top = entry_of(pack, TAR_DIRECTORY, &st);
    top.path = ".";
    int r = tar_writer_add(pack->writer, &top, err);
    return r < 0 ? r : walk_contents(walk, fd, err);
}
