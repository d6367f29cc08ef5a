/* pack.c - walks a tree and writes entries. */
#include "archive/pack.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "files/tar.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <search.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct pack {
    struct tar_writer *writer;
    struct packed *out;
    dev_t dev;
    void *linked; /* tsearch: struct linked by inode */
    unsigned depth;
    size_t len; /* of path */
    char path[TAR_PATH_MAX + 1];
};

/* A file with several names, and the first of them. */
struct linked {
    ino_t inode;
    char path[];
};

static int by_inode(const void *a, const void *b)
{
    const struct linked *left = a;
    const struct linked *right = b;

    return (left->inode > right->inode) - (left->inode < right->inode);
}

/* The first name of this file, or NULL if this is the first. */
static int first_name(
        struct pack *pack, const struct stat *st, const char **out, struct carrel_error *err)
{
    struct linked *linked = malloc(sizeof(*linked) + pack->len + 1);
    if (!linked)
        return err_set_errno(err, -ENOMEM, "pack");
    linked->inode = st->st_ino;
    memcpy(linked->path, pack->path, pack->len + 1);
    struct linked **found = tsearch(linked, &pack->linked, by_inode);
    *out = found && *found != linked ? (*found)->path : NULL;
    if (!found || *found != linked)
        free(linked);
    return found ? 0 : err_set_errno(err, -ENOMEM, "pack");
}

static int add(struct pack *pack, enum tar_kind kind, const char *target, const struct stat *st,
        struct carrel_error *err)
{
    struct tar_entry entry = {
        .kind = kind,
        .path = pack->path,
        .target = target,
        .bytes = kind == TAR_FILE ? (uint64_t)st->st_size : 0,
        .mode = st->st_mode & 01777,
        .mtime = st->st_mtim,
    };

    pack->out->entries++;
    return tar_writer_add(pack->writer, &entry, err);
}

static int add_file(struct pack *pack, int dir, const char *name, struct carrel_error *err)
{
    AUTO(fd_close)
    int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    AUTO(free) char *data = malloc(1U << 17);
    const char *first = NULL;
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return err_set_errno(err, -errno, "open");
    if (!data)
        return err_set_errno(err, -ENOMEM, "pack");
    if (!S_ISREG(st.st_mode))
        return err_set(err, -EAGAIN, "it changed while it was read");
    int r = st.st_nlink > 1 ? first_name(pack, &st, &first, err) : 0;
    if (r < 0 || first)
        return r < 0 ? r : add(pack, TAR_HARDLINK, first, &st, err);
    r = add(pack, TAR_FILE, NULL, &st, err);
    for (uint64_t left = (uint64_t)st.st_size; r == 0 && left > 0;) {
        ssize_t n = fd_read_all(fd, data, left < (1U << 17) ? (size_t)left : 1U << 17);
        if (n < 0)
            return err_set_errno(err, (int)n, "read");
        if (n == 0)
            return err_set(err, -EAGAIN, "it changed while it was read");
        r = tar_writer_data(pack->writer, data, (size_t)n, err);
        left -= (uint64_t)n;
    }
    return r;
}

static int add_symlink(struct pack *pack, int dir, const char *name, const struct stat *st,
        struct carrel_error *err)
{
    char target[TAR_PATH_MAX + 1];

    ssize_t n = readlinkat(dir, name, target, sizeof(target));
    if (n < 0)
        return err_set_errno(err, -errno, "read the link");
    if ((size_t)n == sizeof(target))
        return err_set(err, -ENAMETOOLONG, "the target of the link is too long");
    target[n] = '\0';
    return add(pack, TAR_SYMLINK, target, st, err);
}

static int add_children(struct pack *pack, int dir, struct carrel_error *err);

static int add_directory(struct pack *pack, int dir, const char *name, const struct stat *st,
        struct carrel_error *err)
{
    int r = add(pack, TAR_DIRECTORY, NULL, st, err);
    if (r < 0 || st->st_dev != pack->dev)
        return r;
    AUTO(fd_close)
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return err_set_errno(err, -errno, "open");
    return add_children(pack, fd, err);
}

static int add_child(struct pack *pack, int dir, const char *name, struct carrel_error *err)
{
    size_t before = pack->len;
    char shown[200];
    struct stat st;

    int n = snprintf(
            pack->path + before, sizeof(pack->path) - before, "%s%s", before ? "/" : "", name);
    if ((size_t)n >= sizeof(pack->path) - before)
        return err_set(err, -ENAMETOOLONG, "a name is too long for an archive");
    pack->len += (size_t)n;
    int r = 0;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        r = err_set_errno(err, -errno, "stat");
    else if (S_ISREG(st.st_mode))
        r = add_file(pack, dir, name, err);
    else if (S_ISDIR(st.st_mode))
        r = add_directory(pack, dir, name, &st, err);
    else if (S_ISLNK(st.st_mode))
        r = add_symlink(pack, dir, name, &st, err);
    else
        pack->out->skipped++;
    if (r < 0 && err &&
            err->message[0] != '\'') /* only the innermost name is part of the message */
        (void)err_wrap(err, r, "'%s'", str_escape(pack->path, pack->len, shown, sizeof(shown)));
    pack->len = before;
    pack->path[before] = '\0';
    return r;
}

static int by_bytes(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_child(const struct dirent *entry)
{
    return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

static int add_children(struct pack *pack, int dir, struct carrel_error *err)
{
    struct dirent **list = NULL;
    int r = 0;

    if (++pack->depth > TAR_LIMITS.depth)
        return err_set(err, -ENAMETOOLONG, "it is too deep for an archive");
    int n = scandirat(dir, ".", &list, is_child, by_bytes);
    if (n < 0)
        return err_set_errno(err, -errno, "read the directory");
    for (int i = 0; i < n; i++) {
        if (r == 0)
            r = add_child(pack, dir, list[i]->d_name, err);
        free(list[i]);
    }
    free(list);
    pack->depth--;
    return r;
}

int pack_tree(int dir, int out, struct packed *packed, struct carrel_error *err)
{
    AUTO(tar_writer_free) struct tar_writer *writer = NULL;
    struct packed result = { 0 };
    struct pack pack = { .out = &result };
    struct stat st;

    if (fstat(dir, &st) < 0)
        return err_set_errno(err, -errno, "stat");
    int r = tar_writer_open(out, &writer, err);
    if (r < 0)
        return r;
    pack.writer = writer;
    pack.dev = st.st_dev;
    r = add_children(&pack, dir, err);
    tdestroy(pack.linked, free);
    if (r == 0)
        r = tar_writer_finish(writer, err);
    if (r == 0)
        *packed = result;
    return r;
}
