/* rundir.c - a directory of this user alone. */
#include "base/rundir.h"
#include "base/err.h"
#include "base/fd.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static int dir_path(char *path, size_t size)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    int n;

    if (geteuid() == 0)
        n = snprintf(path, size, "/run/carrel");
    else if (runtime && runtime[0] == '/')
        n = snprintf(path, size, "%s/carrel", runtime);
    else
        n = snprintf(path, size, "/tmp/carrel-%u", (unsigned)geteuid());
    return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

/* /tmp is everybody's: a directory that somebody else made there is not ours. */
int rundir_open(struct carrel_error *err)
{
    char path[PATH_MAX];
    struct stat st;

    int r = dir_path(path, sizeof(path));
    if (r < 0)
        return err_set_errno(err, r, "XDG_RUNTIME_DIR");
    AUTO(fd_close) int dir = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0 && errno == ENOENT) {
        if (mkdir(path, 0700) < 0 && errno != EEXIST)
            return err_set_errno(err, -errno, "make '%s'", path);
        dir = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    }
    if (dir < 0 || fstat(dir, &st) < 0)
        return err_set_errno(err, -errno, "open '%s'", path);
    if (st.st_uid != geteuid() || (st.st_mode & 022))
        return err_set(err, -EPERM,
                "'%s' belongs to somebody else or can be written by others; remove it", path);
    return fd_steal(&dir);
}
