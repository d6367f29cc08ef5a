/* fd.c - small operations on descriptors. */
#include "base/fd.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/openat2.h>

#define OPEN_TRIES 10000

void fd_close(int fd)
{
    int saved = errno;

    if (fd >= 0)
        (void)close(fd); /* nothing useful can be done about a failing close */
    errno = saved;
}

int fd_open_how(int dir, const char *path, const struct open_how *how)
{
    int fd = -1;

    for (int i = 0; i < OPEN_TRIES; i++) {
        fd = (int)syscall(SYS_openat2, dir, path, how, sizeof(*how));
        if (fd >= 0 || errno != EAGAIN)
            break;
    }
    return fd < 0 ? -errno : fd;
}

int fd_steal(int *fd)
{
    int stolen = *fd;

    *fd = -1;
    return stolen;
}

int fd_write_all(int fd, const void *data, size_t len)
{
    const char *at = data;

    while (len > 0) {
        ssize_t n = write(fd, at, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        at += n;
        len -= (size_t)n;
    }
    return 0;
}

int fd_send_all(int fd, const void *data, size_t len)
{
    const char *at = data;

    while (len > 0) {
        ssize_t n = send(fd, at, len, MSG_NOSIGNAL);
        if (n < 0 && errno == ENOTSOCK)
            return fd_write_all(fd, at, len);
        if (n < 0 && errno != EINTR)
            return -errno;
        if (n > 0) {
            at += n;
            len -= (size_t)n;
        }
    }
    return 0;
}

ssize_t fd_write_no_signal(int fd, const void *data, size_t len)
{
    const struct timespec at_once = { 0 };
    sigset_t pipe;
    sigset_t before;
    sigset_t pending;

    (void)sigemptyset(&pipe);
    (void)sigaddset(&pipe, SIGPIPE);
    if (sigpending(&pending) < 0 || pthread_sigmask(SIG_BLOCK, &pipe, &before) != 0)
        return -1;
    ssize_t n = write(fd, data, len);
    int code = errno;
    if (n < 0 && code == EPIPE && sigismember(&pending, SIGPIPE) == 0)
        (void)sigtimedwait(&pipe, NULL, &at_once); /* ours; none if it is ignored */
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = code;
    return n;
}

ssize_t fd_read_all(int fd, void *data, size_t max)
{
    char *at = data;
    size_t got = 0;

    while (got < max) {
        ssize_t n = read(fd, at + got, max - got);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        got += (size_t)n;
    }
    return (ssize_t)got;
}

int fd_write_file(int dir, const char *path, const char *text)
{
    AUTO(fd_close) int fd = openat(dir, path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return -errno;

    size_t len = strlen(text);
    ssize_t n = write(fd, text, len);
    if (n < 0)
        return -errno;
    return (size_t)n == len ? 0 : -EIO;
}

ssize_t fd_read_file(int dir, const char *path, char *text, size_t size)
{
    AUTO(fd_close) int fd = openat(dir, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return -errno;

    ssize_t n = fd_read_all(fd, text, size - 1);
    if (n < 0)
        return n;
    text[n] = '\0';
    return n;
}

int fd_write_new(int dir, const char *name, const void *data, size_t len)
{
    AUTO(fd_close)
    int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd < 0)
        return -errno;
    return fd_write_all(fd, data, len);
}

int fd_write_new_text(int dir, const char *name, const char *text)
{
    return fd_write_new(dir, name, text, strlen(text));
}

int fd_make_dirs(int dir, const char *const *names)
{
    for (; *names; names++) {
        if (mkdirat(dir, *names, 0777) < 0 && errno != EEXIST)
            return -errno;
    }
    return 0;
}

int fd_add_file(int dir, const char *path, struct buf *text, struct carrel_error *err)
{
    char chunk[16384];

    AUTO(fd_close) int fd = openat(dir, path, O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : err_set_errno(err, -errno, "open '%s'", path);
    for (;;) {
        ssize_t n = fd_read_all(fd, chunk, sizeof(chunk));
        if (n < 0)
            return err_set_errno(err, (int)n, "read '%s'", path);
        if (n == 0)
            return text->is_short ? err_set_errno(err, -EFBIG, "'%s'", path) : 0;
        buf_add(text, chunk, (size_t)n);
    }
}

int fd_set_nonblocking(int fd)
{
    int flags = fcntl(fd, F_GETFL);

    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
        return -errno;
    return 0;
}

/* Opens the directory that holds `path` and finds the last component. */
static int open_parent(const char *path, const char **name)
{
    char dir[PATH_MAX];
    const char *slash = strrchr(path, '/');
    size_t len = slash ? (size_t)(slash - path) : 0;

    *name = slash ? slash + 1 : path;
    if (len >= sizeof(dir))
        return -ENAMETOOLONG;
    memcpy(dir, path, len);
    dir[len] = '\0';

    const char *open_as = !slash ? "." : len == 0 ? "/" : dir;
    int fd = open(open_as, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

int fd_replace_at(int dir, const char *name, const void *data, size_t len, mode_t mode)
{
    char tmp[NAME_MAX + 1];

    /*
     * The pid alone is not unique: it is reused, and a killed writer may have left such a file.
     */
    if (snprintf(tmp, sizeof(tmp), ".%.200s.%d.%" PRIx64, name, (int)getpid(), clock_ns()) < 0)
        return -EINVAL;
    AUTO(fd_close)
    int fd = openat(dir, tmp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (fd < 0)
        return -errno;

    int r = fd_write_all(fd, data, len);
    if (r == 0 && fsync(fd) < 0)
        r = -errno;
    if (r == 0 && renameat(dir, tmp, dir, name) < 0)
        r = -errno;
    if (r < 0) {
        (void)unlinkat(dir, tmp, 0); /* half-written; the error is what matters */
        return r;
    }

    AUTO(fd_close) int sync = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return sync < 0 || fsync(sync) < 0 ? -errno : 0;
}

int fd_replace_file(
        const char *path, const void *data, size_t len, mode_t mode, struct carrel_error *err)
{
    const char *name;
    AUTO(fd_close) int dir = open_parent(path, &name);
    if (dir < 0)
        return err_set_errno(err, dir, "write '%s': its directory", path);
    int r = fd_replace_at(dir, name, data, len, mode);
    return r < 0 ? err_set_errno(err, r, "write '%s'", path) : 0;
}

void fd_close_all_but(const int *keep, size_t n)
{
    unsigned from = 0;

    for (;;) { /* the gap before the next descriptor that is kept */
        unsigned next = UINT_MAX;
        for (size_t i = 0; i < n; i++)
            if (keep[i] >= 0 && (unsigned)keep[i] >= from && (unsigned)keep[i] < next)
                next = (unsigned)keep[i];
        if (next > from)
            (void)syscall(SYS_close_range, from, next == UINT_MAX ? next : next - 1, 0U);
        if (next == UINT_MAX)
            return;
        from = next + 1;
    }
}

void fd_raise_limit(void)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &files);
    }
}
