/*
 * unpack.c - creates the files of an archive.
 *
 * An archive can contain a link that leads out of the tree and then a file behind it. So the
 * path of an entry is walked from the top, one component at a time, each opened with
 * O_NOFOLLOW: every component is a directory that this archive created, or the archive is
 * refused. An entry replaces an existing one of its name, as tar does, but never through a
 * link.
 */
#include "archive/unpack.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "base/tree.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#define HIDES ".wh."
#define HIDES_ALL ".wh..wh..opq"
#define HIDES_NOTHING ".wh..wh." /* internal files of AUFS */

struct tree {
    int dir;
    int parent;                  /* the directory that was used last */
    char path[TAR_PATH_MAX + 1]; /* ... and its path; "." is the top */
    struct unpacked *out;
};

static bool is_whiteout(const struct stat *st)
{
    return S_ISCHR(st->st_mode) && st->st_rdev == makedev(0, 0);
}

static int set_opaque(int parent, const char *name, struct carrel_error *err)
{
    AUTO(fd_close)
    int dir = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0)
        return err_set_errno(err, -errno, "open a directory");
    if (fsetxattr(dir, "user.overlay.opaque", "y", 1, 0) < 0)
        return err_set_errno(err, -errno,
                "set user.overlay.opaque, which says that lower layers are hidden here");
    return 0;
}

/* The directory was hidden before; the new one starts empty. */
static int make_over_whiteout(int parent, const char *name, struct carrel_error *err)
{
    if (unlinkat(parent, name, 0) < 0)
        return err_set_errno(err, -errno, "replace a whiteout");
    if (mkdirat(parent, name, 0755) < 0)
        return err_set_errno(err, -errno, "make a directory");
    return set_opaque(parent, name, err);
}

enum walk { WALK_AND_MAKE, WALK_ONLY };

/* Opens the directory `name` in `parent`; creates it if it is missing. */
static int step(int parent, const char *name, enum walk walk, struct carrel_error *err)
{
    int dir = openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir >= 0)
        return dir;
    if (errno == ENOENT && walk == WALK_AND_MAKE) {
        if (mkdirat(parent, name, 0755) < 0)
            return err_set_errno(err, -errno, "make a directory");
    } else if (errno == ENOTDIR || errno == ELOOP) {
        struct stat st;
        if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            return err_set_errno(err, -errno, "stat");
        if (!is_whiteout(&st) || walk == WALK_ONLY)
            return err_set(err, -ENOTDIR, "its path goes through a %s",
                    S_ISLNK(st.st_mode) ? "link" : "file");
        int r = make_over_whiteout(parent, name, err);
        if (r < 0)
            return r;
    } else {
        return err_set_errno(err, -errno, "open a directory of its path");
    }
    dir = openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return dir < 0 ? err_set_errno(err, -errno, "open a directory") : dir;
}

/* Opens the clean path `path`, one component at a time. Returns a descriptor. */
static int walk_to(int top, const char *path, enum walk walk, struct carrel_error *err)
{
    AUTO(fd_close) int dir = openat(top, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return err_set_errno(err, -errno, "open the top");
    while (*path && strcmp(path, ".") != 0) {
        size_t len = strcspn(path, "/");
        char part[NAME_MAX + 1];
        memcpy(part, path, len); /* tar_clean_path() has checked the length */
        part[len] = '\0';
        int next = step(dir, part, walk, err);
        if (next < 0)
            return next;
        fd_close(dir);
        dir = next;
        path += len + (path[len] == '/');
    }
    return fd_steal(&dir);
}

/* Splits a clean path that is not ".": returns the last component, `way` gets the rest. */
static const char *split(const char *path, char way[static TAR_PATH_MAX + 1])
{
    const char *slash = strrchr(path, '/');
    size_t len = slash ? (size_t)(slash - path) : 1;

    memcpy(way, slash ? path : ".", len);
    way[len] = '\0';
    return slash ? slash + 1 : path;
}

/* Opens the parent directory of `path`, or reuses it if it is the same as before. */
static int go_to_parent(
        struct tree *tree, const char *path, const char **name, struct carrel_error *err)
{
    char way[TAR_PATH_MAX + 1];

    *name = split(path, way);
    if (tree->parent >= 0 && strcmp(way, tree->path) == 0)
        return 0;
    int parent = walk_to(tree->dir, way, WALK_AND_MAKE, err);
    if (parent < 0)
        return parent;
    fd_close(tree->parent);
    tree->parent = parent;
    memcpy(tree->path, way, sizeof(way));
    return 0;
}

enum old { OLD_NONE, OLD_DIRECTORY, OLD_WHITEOUT };

/*
 * Removes an existing entry of this name. A directory is kept if the new entry is one; a
 * whiteout means that the new directory must hide the layers below.
 */
static int make_room(
        struct tree *tree, const char *name, enum tar_kind kind, struct carrel_error *err)
{
    struct stat st;

    if (fstatat(tree->parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? OLD_NONE : err_set_errno(err, -errno, "stat");
    if (S_ISDIR(st.st_mode) && kind == TAR_DIRECTORY)
        return OLD_DIRECTORY;
    int r = 0;
    if (S_ISDIR(st.st_mode))
        r = tree_remove(tree->parent, name, err);
    else if (unlinkat(tree->parent, name, 0) < 0)
        r = err_set_errno(err, -errno, "replace");
    if (r < 0)
        return r;
    return is_whiteout(&st) ? OLD_WHITEOUT : OLD_NONE;
}

static int finish_file(
        int fd, mode_t mode, const struct tar_entry *entry, struct carrel_error *err)
{
    struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, entry->mtime };

    if (fchmod(fd, mode) < 0)
        return err_set_errno(err, -errno, "set permissions");
    /* A time that the file system cannot store does not justify a refusal. */
    (void)futimens(fd, times);
    return 0;
}

static int make_file(struct tree *tree, struct tar_reader *reader, const char *name,
        const struct tar_entry *entry, struct carrel_error *err)
{
    AUTO(fd_close)
    int fd = openat(
            tree->parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_set_errno(err, -errno, "make a file");
    int r = tar_reader_copy(reader, fd, err);
    if (r < 0)
        return r;
    tree->out->bytes += entry->bytes;
    return finish_file(fd, entry->mode | 0400, entry, err);
}

static int make_directory(struct tree *tree, const char *name, enum old old,
        const struct tar_entry *entry, struct carrel_error *err)
{
    if (old != OLD_DIRECTORY && mkdirat(tree->parent, name, 0700) < 0)
        return err_set_errno(err, -errno, "make a directory");
    int r = old == OLD_WHITEOUT ? set_opaque(tree->parent, name, err) : 0;
    if (r < 0)
        return r;
    AUTO(fd_close)
    int fd = openat(tree->parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return err_set_errno(err, -errno, "open a directory");
    return finish_file(fd, entry->mode | 0700, entry, err);
}

static int make_hard_link(struct tree *tree, const char *name, const struct tar_entry *entry,
        struct carrel_error *err)
{
    char way[TAR_PATH_MAX + 1];
    char shown[200];
    struct stat st;

    str_escape(entry->target, strlen(entry->target), shown, sizeof(shown));
    if (strcmp(entry->target, ".") == 0)
        return err_set(err, -EINVAL, "a hard link to the top");
    const char *last = split(entry->target, way);
    AUTO(fd_close) int from = walk_to(tree->dir, way, WALK_ONLY, err);
    if (from < 0)
        return err_wrap(err, from, "a hard link to '%s'", shown);
    if (fstatat(from, last, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return err_set_errno(err, -errno, "a hard link to '%s'", shown);
    if (!S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode))
        return err_set(err, -EINVAL, "a hard link to '%s', which is no file", shown);
    if (linkat(from, last, tree->parent, name, 0) < 0)
        return err_set_errno(err, -errno, "a hard link to '%s'", shown);
    return 0;
}

/* ".wh.NAME": a whiteout for NAME of the layers below. */
static int hide(struct tree *tree, const char *name, struct carrel_error *err)
{
    const char *hidden = name + strlen(HIDES);
    struct stat st;

    if (strcmp(name, HIDES_ALL) == 0) {
        tree->out->hidden++;
        return set_opaque(tree->parent, ".", err);
    }
    if (strncmp(name, HIDES_NOTHING, strlen(HIDES_NOTHING)) == 0)
        return 0;
    if (!path_is_name(hidden))
        return err_set(err, -EINVAL, "it hides no name");
    tree->out->hidden++;
    if (fstatat(tree->parent, hidden, &st, AT_SYMLINK_NOFOLLOW) ==
            0) /* created by this layer itself */
        return S_ISDIR(st.st_mode) ? set_opaque(tree->parent, hidden, err) : 0;
    if (mknodat(tree->parent, hidden, S_IFCHR, makedev(0, 0)) < 0)
        return err_set_errno(
                err, -errno, "make a whiteout (a character device 0/0, as overlayfs has it)");
    return 0;
}

static int make(struct tree *tree, struct tar_reader *reader, const struct tar_entry *entry,
        struct carrel_error *err)
{
    const char *name;

    if (strcmp(entry->path, ".") == 0) {
        if (entry->kind != TAR_DIRECTORY)
            return err_set(err, -EINVAL, "the top is no directory");
        return finish_file(tree->dir, entry->mode | 0700, entry, err);
    }
    if (entry->kind == TAR_OTHER) {
        tree->out->skipped++;
        return 0;
    }
    if (entry->kind == TAR_HARDLINK && strcmp(entry->path, entry->target) == 0)
        return err_set(err, -EINVAL, "a hard link to itself");
    int r = go_to_parent(tree, entry->path, &name, err);
    if (r < 0)
        return r;
    if (strncmp(name, HIDES, strlen(HIDES)) == 0)
        return hide(tree, name, err);
    r = make_room(tree, name, entry->kind, err);
    if (r < 0)
        return r;
    tree->out->entries++;
    switch (entry->kind) {
    case TAR_FILE:
        return make_file(tree, reader, name, entry, err);
    case TAR_DIRECTORY:
        return make_directory(tree, name, (enum old)r, entry, err);
    case TAR_SYMLINK:
        if (symlinkat(entry->target, tree->parent, name) < 0)
            return err_set_errno(err, -errno, "make a link");
        return 0;
    case TAR_HARDLINK:
        return make_hard_link(tree, name, entry, err);
    case TAR_OTHER:
    case TAR_FAILED:
        break;
    }
    return 0;
}

/*
 * Reads what follows the archive's end: it is part of the digest, and the hashing side would
 * block.
 */
static int drain(int fd, struct carrel_error *err)
{
    char data[1U << 14];
    ssize_t n;

    do
        n = read(fd, data, sizeof(data));
    while (n > 0 || (n < 0 && errno == EINTR));
    return n < 0 ? err_set_errno(err, -errno, "read the end of the archive") : 0;
}

int unpack_tree(int fd, int dir, const struct tar_limits *limits, struct unpacked *out,
        struct carrel_error *err)
{
    AUTO(tar_reader_free) struct tar_reader *reader = NULL;
    struct unpacked result = { 0 };
    struct tree tree = { .dir = dir, .parent = -1, .out = &result };
    struct tar_entry entry;
    char shown[200];

    int r = tar_reader_open(fd, TAR_PLAIN, limits, &reader, err);
    if (r < 0)
        return r;
    while ((r = tar_reader_next(reader, &entry, err)) > 0) {
        r = make(&tree, reader, &entry, err);
        if (r < 0) {
            (void)err_wrap(err, r, "'%s'",
                    str_escape(entry.path, strlen(entry.path), shown, sizeof(shown)));
            break;
        }
    }
    fd_close(tree.parent);
    if (r == 0)
        r = drain(fd, err);
    if (r < 0)
        return r;
    *out = result;
    return 0;
}
