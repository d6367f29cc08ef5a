/* beneath.c - openat2; no path is resolved in another way. */
#include "git/beneath.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

static int open_dir(int root, const char *path)
{
    const struct open_how how = {
        .flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
        .resolve =
                RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV,
    };
    int fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));

    return fd < 0 ? -errno : fd;
}

/* Splits "a/b/c" into "a/b" ("." when there is one component) and "c". */
static int split(const char *path, char dir[static PATH_MAX], const char **name)
{
    const char *slash = strrchr(path, '/');
    size_t len = slash ? (size_t)(slash - path) : 1;

    if (len >= PATH_MAX)
        return -ENAMETOOLONG;
    memcpy(dir, slash ? path : ".", len);
    dir[len] = '\0';
    *name = slash ? slash + 1 : path;
    return 0;
}

int beneath_parent(int root, const char *path, const char **name)
{
    char dir[PATH_MAX];
    int r = split(path, dir, name);

    return r < 0 ? r : open_dir(root, dir);
}

/* Opens one component, and creates it first if necessary. */
static int enter(int at, const char *name)
{
    int fd = open_dir(at, name);

    if (fd != -ENOENT)
        return fd;
    if (mkdirat(at, name, 0777) < 0 && errno != EEXIST)
        return -errno;
    return open_dir(at, name);
}

int beneath_make_parent(int root, const char *path, const char **name)
{
    char dir[PATH_MAX];
    int r = split(path, dir, name);
    if (r < 0)
        return r;
    r = open_dir(root, dir);
    if (r != -ENOENT)
        return r;

    AUTO(fd_close) int at = open_dir(root, ".");
    for (char *next, *part = dir; part && at >= 0; part = next) {
        next = strchr(part, '/');
        if (next)
            *next++ = '\0';
        int deeper = enter(at, part);
        fd_close(at);
        at = deeper;
    }
    return fd_steal(&at);
}

void beneath_prune_parents(int root, const char *path)
{
    char dir[PATH_MAX];
    const char *name;

    if (split(path, dir, &name) < 0)
        return;
    while (name != path) { /* there is a directory left in `dir` */
        const char *last;
        AUTO(fd_close) int parent = beneath_parent(root, dir, &last);
        int r = parent < 0 ? parent : unlinkat(parent, last, AT_REMOVEDIR) < 0 ? -errno : 0;
        if ((r < 0 && r != -ENOENT) || last == dir)
            return;
        *(strrchr(dir, '/')) = '\0';
    }
}

int beneath_stat(int root, const char *path, struct stat *st)
{
    const char *name;
    AUTO(fd_close) int parent = beneath_parent(root, path, &name);
    if (parent < 0)
        return parent;

    return fstatat(parent, name, st, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}
