/*
 * file.c - copies as an overlay reads them.
 *
 * Attributes that an overlay keeps for itself (user.overlay.*) say how a file came to be where
 * it is, so they are not copied; that a directory is opaque is recorded by the code that makes
 * it. Those that a program set under such a name are stored as user.overlay.overlay.*, and
 * copied.
 */
#include "layer/file.h"
#include "base/auto.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/xattr.h>
#include <unistd.h>

#define OWN "user.overlay."
#define ESCAPED "user.overlay.overlay."

static int open_as_it_is(int dir, const char *name, const struct stat *st)
{
    int fd = openat(dir, name,
            O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC |
                    (S_ISDIR(st->st_mode) ? O_DIRECTORY : 0));

    return fd < 0 ? -errno : fd;
}

bool file_is_shut(const struct stat *st)
{
    const mode_t need = S_IRUSR | S_IXUSR;

    return geteuid() != 0 && S_ISDIR(st->st_mode) && (st->st_mode & need) != need;
}

/*
 * A program that should be paused may have replaced the name: no link is followed, and only the
 * file that was checked is changed.
 */
static int set_mode(int dir, const char *name, const struct stat *st, mode_t mode)
{
    char path[48];
    struct stat now;
    AUTO(fd_close) int fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0 || fstat(fd, &now) < 0)
        return -errno;
    if (now.st_dev != st->st_dev || now.st_ino != st->st_ino)
        return -ESTALE;
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd); /* O_PATH knows no fchmod() */
    return chmod(path, mode) < 0 ? -errno : 0;
}

int file_open(int dir, const char *name, const struct stat *st)
{
    const mode_t need = S_ISDIR(st->st_mode) ? S_IRUSR | S_IXUSR : S_IRUSR;
    int fd = open_as_it_is(dir, name, st);

    if (fd == -EACCES || (fd >= 0 && file_is_shut(st))) {
        fd_close(fd);
        int r = set_mode(dir, name, st, (st->st_mode & 07777) | need);
        if (r < 0)
            return r;
        fd = open_as_it_is(dir, name, st);
        if (fd >= 0 && !S_ISDIR(st->st_mode) && fchmod(fd, st->st_mode & 07777) < 0) {
            int code = -errno;
            fd_close(fd);
            return code;
        }
    }
    return fd;
}

int file_restore(int fd, const struct stat *st)
{
    struct stat now;

    if (fstat(fd, &now) < 0)
        return -errno;
    if ((now.st_mode & 07777) == (st->st_mode & 07777))
        return 0;
    return fchmod(fd, st->st_mode & 07777) < 0 ? -errno : 0;
}

/* One stretch of data; the ways differ in what the two file systems can. */
static int copy_stretch(int from, int to, off_t at, off_t end)
{
    char block[65536];

    while (at < end) {
        off_t in = at;
        off_t out = at;
        ssize_t n = copy_file_range(from, &in, to, &out, (size_t)(end - at), 0);
        if (n < 0 &&
                (errno == EXDEV || errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP)) {
            size_t want = end - at < (off_t)sizeof(block) ? (size_t)(end - at) : sizeof(block);
            n = pread(from, block, want, at);
            for (ssize_t done = 0; n > 0 && done < n;) {
                ssize_t m = pwrite(to, block + done, (size_t)(n - done), at + done);
                if (m < 0)
                    return -errno;
                done += m;
            }
        }
        if (n < 0 && errno != EINTR)
            return -errno;
        if (n == 0)
            return 0; /* shorter than it said */
        if (n > 0)
            at += n;
    }
    return 0;
}

static int copy_data(int from, int to, off_t size)
{
    if (size == 0 || ioctl(to, FICLONE, from) == 0)
        return 0;
    if (ftruncate(to, size) < 0)
        return -errno;
    for (off_t at = 0; at < size;) {
        off_t data = lseek(from, at, SEEK_DATA);
        if (data < 0 && errno == ENXIO)
            return 0; /* a hole to the end */
        off_t hole = data < 0 ? -1 : lseek(from, data, SEEK_HOLE);
        if (data < 0 || hole < 0) {
            if (errno != EINVAL)
                return -errno;
            data = at; /* a file system without holes */
            hole = size;
        }
        int r = copy_stretch(from, to, data, hole < size ? hole : size);
        if (r < 0)
            return r;
        at = hole;
    }
    return 0;
}

/*
 * File systems differ in how much they hold: ext4 has about 4 KB for all attributes of a file,
 * xfs 64 KB for each. A program chooses its attributes, and one that does not fit must not keep
 * all of its files from being copied: that one is left out. ext4 says ENOSPC also if the disk
 * is full, but then the data of files does not fit either.
 */
static bool is_too_large(int code)
{
    return code == -ENOSPC || code == -E2BIG || code == -ERANGE;
}

static int copy_attribute(int from, int to, const char *name)
{
    char few[1024];
    AUTO(free) char *many = NULL;
    char *value = few;

    ssize_t n = fgetxattr(from, name, few, sizeof(few));
    if (n < 0 && errno == ERANGE) {
        value = many = malloc(XATTR_SIZE_MAX);
        if (!many)
            return -ENOMEM;
        n = fgetxattr(from, name, many, XATTR_SIZE_MAX);
    }
    if (n < 0)
        return -errno;
    int r = fsetxattr(to, name, value, (size_t)n, 0) < 0 ? -errno : 0;
    return is_too_large(r) ? 0 : r;
}

/* Programs can set attributes of users only; what the host's file system adds is its own. */
static bool is_wanted(const char *name)
{
    if (strncmp(name, "user.", strlen("user.")) != 0)
        return false;
    return strncmp(name, OWN, strlen(OWN)) != 0 || strncmp(name, ESCAPED, strlen(ESCAPED)) == 0;
}

int file_copy_attributes(int from, int to)
{
    char few[1024];
    AUTO(free) char *many = NULL;
    char *list = few;

    ssize_t len = flistxattr(from, few, sizeof(few));
    if (len < 0 && errno == ERANGE) {
        list = many = malloc(XATTR_LIST_MAX);
        if (!many)
            return -ENOMEM;
        len = flistxattr(from, many, XATTR_LIST_MAX);
    }
    if (len < 0)
        return errno == ENOTSUP ? 0 : -errno;
    int r = 0;
    for (const char *at = list; r == 0 && at < list + len; at += strlen(at) + 1)
        if (is_wanted(at))
            r = copy_attribute(from, to, at);
    return r;
}

int file_finish(int fd, const struct stat *st)
{
    const struct timespec times[] = { st->st_atim, st->st_mtim };
    struct stat now;

    if (fstat(fd, &now) < 0)
        return -errno;
    if ((now.st_uid != st->st_uid || now.st_gid != st->st_gid) &&
            fchown(fd, st->st_uid, st->st_gid) < 0)
        return -errno;
    if (fchmod(fd, st->st_mode & 07777) < 0 || futimens(fd, times) < 0)
        return -errno;
    return 0;
}

int file_copy(int from, const char *name, const struct stat *st, int to)
{
    struct stat now;
    AUTO(fd_close) int in = file_open(from, name, st);
    if (in < 0)
        return in;
    if (fstat(in, &now) < 0)
        return -errno;
    if (!S_ISREG(now.st_mode))
        return -ESTALE;
    AUTO(fd_close)
    int out = openat(to, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (out < 0)
        return -errno;
    int r = copy_data(in, out, st->st_size);
    if (r == 0)
        r = file_copy_attributes(in, out);
    return r < 0 ? r : file_finish(out, st);
}

static int copy_link(int from, const char *name, int to)
{
    char target[PATH_MAX];
    ssize_t n = readlinkat(from, name, target, sizeof(target) - 1);

    if (n < 0)
        return -errno;
    target[n] = '\0';
    return symlinkat(target, to, name) < 0 ? -errno : 0;
}

int file_copy_special(int from, const char *name, const struct stat *st, int to)
{
    const struct timespec times[] = { st->st_atim, st->st_mtim };
    const mode_t type = st->st_mode & S_IFMT;
    int r = 0;

    if (S_ISLNK(st->st_mode))
        r = copy_link(from, name, to);
    else if (S_ISCHR(st->st_mode) && st->st_rdev == 0)
        r = mknodat(to, name, S_IFCHR | (st->st_mode & 07777), 0) < 0 ? -errno : 0;
    else if (S_ISFIFO(st->st_mode) || S_ISSOCK(st->st_mode))
        r = mknodat(to, name, type | 0600, 0) < 0 ||
                            fchmodat(to, name, st->st_mode & 07777, 0) < 0
                    ? -errno
                    : 0;
    else
        return 0; /* a device: no program can make one */
    if (r < 0)
        return r;
    struct stat now;
    if (fstatat(to, name, &now, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    if ((now.st_uid != st->st_uid || now.st_gid != st->st_gid) &&
            fchownat(to, name, st->st_uid, st->st_gid, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    return utimensat(to, name, times, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}
