/* swap_copy.c - copies by descriptors; nothing is opened through a link. */
#include "workspace/apply/swap_copy.h"
#include "base/fd.h"
#include "git/beneath.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/sendfile.h>
#include <unistd.h>

#define CHUNK_BYTES ((size_t)64 << 20)

int swap_part(int stage, const char *name)
{
    int fd = openat(stage, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    return fd < 0 ? -errno : fd;
}

static int copy_bytes(int from, int to)
{
    ssize_t n;

    while ((n = copy_file_range(from, NULL, to, NULL, CHUNK_BYTES, 0)) > 0)
        ;
    if (n == 0)
        return 0;
    while ((n = sendfile(to, from, NULL, CHUNK_BYTES)) > 0) /* on to where the other stopped */
        ;
    return n < 0 ? -errno : 0;
}

static int copy_link(int from, int to, const char *name)
{
    char target[PATH_MAX];
    ssize_t n = readlinkat(from, name, target, sizeof(target));

    if (n < 0)
        return -errno;
    if ((size_t)n == sizeof(target))
        return -ENAMETOOLONG;
    target[n] = '\0';
    return symlinkat(target, to, name) < 0 ? -errno : 0;
}

int swap_copy(int from, int to, const char *name)
{
    AUTO(fd_close) int in = openat(from, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat st;

    if (in < 0)
        return errno == ELOOP ? copy_link(from, to, name) : -errno;
    if (fstat(in, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode))
        return -EINVAL;
    AUTO(fd_close)
    int out = openat(
            to, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, st.st_mode & 0777);
    return out < 0 ? -errno : copy_bytes(in, out);
}

int swap_copy_path(int from, int to, const char *path)
{
    const char *name;
    AUTO(fd_close) int source = beneath_parent(from, path, &name);
    if (source < 0)
        return source;
    AUTO(fd_close) int target = beneath_make_parent(to, path, &name);
    if (target < 0)
        return target;
    if (unlinkat(target, name, 0) < 0 && errno != ENOENT)
        return -errno;
    return swap_copy(source, target, name);
}
