/*
 * tree.c - removes trees without recursion.
 *
 * A directory that is not empty is moved up into the top directory before it is emptied, so the
 * tree is never deeper than two levels while we work on it: two descriptors and two buffers are
 * enough for any depth.
 */
#include "base/tree.h"
#include "base/dir.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "base/subids.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAX_ROUNDS 1000 /* each is caused by a concurrent remover's progress */

struct removal {
    int top;                  /* the directory to be removed */
    uint64_t moved;           /* gives moved directories their names */
    struct carrel_error *err; /* says why, for the first failure */
    int result;               /* of the first failure */
};

/* Entry of getdents64(): readdir() would allocate. */
struct entry {
    uint64_t inode;
    int64_t offset;
    uint16_t len;
    uint8_t type;
    char name[];
};

/*
 * Opens a directory so that everything in it can be removed. The mount check precedes the
 * change of mode: else the mode of a mounted, foreign directory would change.
 */
static int open_dir(int dir, const char *name)
{
    const struct open_how how = {
        .flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
        .resolve = RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH,
    };
    char self[40];
    struct stat st;
    AUTO(fd_close) int path = (int)syscall(SYS_openat2, dir, name, &how, sizeof(how));
    if (path < 0 || fstat(path, &st) < 0)
        return -errno;

    /* fchmod() refuses an O_PATH descriptor; this link leads to the same inode. */
    (void)snprintf(self, sizeof(self), "/proc/self/fd/%d", path);
    if ((st.st_mode & S_IRWXU) != S_IRWXU && chmod(self, S_IRWXU) < 0)
        return -errno;
    int fd = openat(path, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

/* Moving a directory rewrites its "..", for which it must be writable. */
static int open_up(int dir, const char *name)
{
    AUTO(fd_close) int fd = open_dir(dir, name);

    return fd < 0 ? fd : 0;
}

/*
 * Moves `name` from `dir` to a new name in the top directory. The rename can only replace an
 * empty directory; on any other existing entry the next name is tried.
 */
static int move_up(struct removal *removal, int dir, const char *name)
{
    char new_name[32];
    int r = open_up(dir, name);

    while (r == 0) {
        (void)snprintf(new_name, sizeof(new_name), ".gone-%ju", (uintmax_t)removal->moved++);
        if (renameat(dir, name, removal->top, new_name) == 0)
            return 0;
        if (errno != EEXIST && errno != ENOTEMPTY && errno != ENOTDIR)
            r = -errno;
    }
    return r;
}

static int empty_dir(struct removal *removal, int dir);

/* A directory in the top directory is emptied here; a deeper one is moved up. */
static int remove_dir(struct removal *removal, int dir, const char *name)
{
    if (unlinkat(dir, name, AT_REMOVEDIR) == 0)
        return 0;
    if (errno != ENOTEMPTY && errno != EEXIST)
        return -errno;
    if (dir != removal->top)
        return move_up(removal, dir, name);

    AUTO(fd_close) int fd = open_dir(dir, name);
    if (fd < 0)
        return fd;
    int r = empty_dir(removal, fd);
    if (r < 0)
        return r;
    return unlinkat(dir, name, AT_REMOVEDIR) < 0 ? -errno : 0;
}

/* Clears the attributes that stop even root (immutable, append-only). */
static bool thaw(int fd)
{
    const int frozen = FS_IMMUTABLE_FL | FS_APPEND_FL;
    int flags = 0;

    if (fd < 0 || ioctl(fd, FS_IOC_GETFLAGS, &flags) < 0 || !(flags & frozen))
        return false;
    flags &= ~frozen;
    return ioctl(fd, FS_IOC_SETFLAGS, &flags) == 0;
}

/* Clears those of the entry, or of its directory. Devices and pipes are not opened. */
static bool thaw_entry(int dir, const char *name)
{
    struct stat st;
    bool is_thawed = thaw(dir);

    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
            !(S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)))
        return is_thawed;
    AUTO(fd_close) int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    return thaw(fd) || is_thawed;
}

static int try_remove(struct removal *removal, int dir, const struct entry *entry)
{
    if (entry->type != DT_DIR) {
        if (unlinkat(dir, entry->name, 0) == 0)
            return 0;
        if (errno != EISDIR)
            return -errno;
    }
    return remove_dir(removal, dir, entry->name);
}

static int remove_entry(struct removal *removal, int dir, const struct entry *entry)
{
    int r = try_remove(removal, dir, entry);

    if (r == -EPERM && thaw_entry(dir, entry->name))
        r = try_remove(removal, dir, entry);
    return r;
}

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static void note_failure(struct removal *removal, int r, const char *name)
{
    char shown[128];

    if (removal->result == 0)
        removal->result = err_set_errno(removal->err, r, "remove '%s'",
                str_escape(name, strlen(name), shown, sizeof(shown)));
}

/* Reads the directory once. Counts the entries that were removed and those that were not. */
static int pass(struct removal *removal, int dir, uint64_t *gone, uint64_t *left)
{
    _Alignas(struct entry) char block[4096];

    if (lseek(dir, 0, SEEK_SET) < 0)
        return -errno;
    for (;;) {
        ssize_t n = syscall(SYS_getdents64, dir, block, sizeof(block));
        if (n <= 0)
            return n < 0 ? -errno : 0;
        for (ssize_t at = 0; at < n;) {
            const struct entry *entry = (const void *)(block + at);
            at += entry->len;
            if (is_dots(entry->name))
                continue;
            int r = remove_entry(removal, dir, entry);
            if (r == 0)
                ++*gone;
            if (r < 0 && r != -ENOENT) {
                note_failure(removal, r, entry->name);
                ++*left;
            }
        }
    }
}

/*
 * Reads and removes until a pass finds nothing: file systems may skip entries during removal,
 * and the top directory gains entries while its children are emptied. Every further pass
 * requires that something was removed, so this ends.
 */
static int empty_dir(struct removal *removal, int dir)
{
    for (;;) {
        uint64_t gone = 0;
        uint64_t left = 0;
        int r = pass(removal, dir, &gone, &left);
        if (r < 0)
            return r;
        if (gone == 0)
            return left == 0 ? 0 : removal->result;
    }
}

/* A concurrent remover may move directories up into the top after we found it empty. */
static int remove_top(struct removal *removal, int dir, const char *name)
{
    int r = -ENOTEMPTY;

    for (int i = 0; i < MAX_ROUNDS && r == -ENOTEMPTY; i++) {
        r = empty_dir(removal, removal->top);
        if (r == 0 && unlinkat(dir, name, AT_REMOVEDIR) < 0)
            r = -errno;
    }
    return r;
}

static int remove_tree(int dir, const char *name, struct carrel_error *err)
{
    struct removal removal = { .top = -1, .err = err };
    char shown[128];

    if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
        return 0;
    int r = -errno;
    if (r == -EISDIR) {
        AUTO(fd_close) int top = open_dir(dir, name);
        removal.top = top;
        r = top < 0 ? top : remove_top(&removal, dir, name);
    }
    if (r == 0 || r == -ENOENT) /* a concurrent remover was faster */
        return 0;
    if (r == removal.result)
        return err_wrap(err, removal.result, "remove tree '%s'",
                str_escape(name, strlen(name), shown, sizeof(shown)));
    return err_set_errno(
            err, r, "remove tree '%s'", str_escape(name, strlen(name), shown, sizeof(shown)));
}

struct apart {
    int dir;
    const char *name;
};

static int remove_apart(void *arg)
{
    const struct apart *apart = arg;

    return remove_tree(apart->dir, apart->name, NULL);
}

int tree_remove(int dir, const char *name, struct carrel_error *err)
{
    struct apart apart = { dir, name };

    int r = remove_tree(dir, name, err);
    if ((r != -EACCES && r != -EPERM) || geteuid() == 0)
        return r;
    return subids_call(remove_apart, &apart, NULL) == 0 ? 0 : r;
}

bool tree_is_empty(int dir, const char *name)
{
    AUTO(dir_close) DIR *list = dir_open(dir, name);

    return list && !dir_next(list);
}
