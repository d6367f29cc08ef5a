/* rundir.c - a directory that only this user can write to. */
#include "base/rundir.h"
#include "base/err.h"
#include "base/fd.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* $XDG_RUNTIME_DIR, or NULL if it is unset or ignored. */
static const char *given_dir(void)
{
    const char *given = getenv("XDG_RUNTIME_DIR");

    return geteuid() != 0 && given && given[0] == '/' ? given : NULL;
}

static int dir_path(const char *given, char *path, size_t size)
{
    int n;

    if (geteuid() == 0)
        n = snprintf(path, size, "/run/carrel");
    else if (given)
        n = snprintf(path, size, "%s/carrel", given);
    else
        n = snprintf(path, size, "/tmp/carrel-%u", (unsigned)geteuid());
    return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

/* /tmp is world-writable: a directory that another user created there is refused. */
static int open_own(const char *path, struct carrel_error *err)
{
    struct stat st;

    AUTO(fd_close) int dir = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0 && errno == ENOENT) {
        if (mkdir(path, 0700) < 0 && errno != EEXIST)
            return err_set_errno(err, -errno, "make '%s'", path);
        dir = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    }
    if (dir < 0 || fstat(dir, &st) < 0)
        return err_set_errno(err, -errno, "open '%s'", path);
    if (st.st_uid != geteuid() || (st.st_mode & 022))
        return err_set(
                err, -EPERM, "'%s' belongs to or is writable by another user; remove it", path);
    return fd_steal(&dir);
}

int rundir_open(struct carrel_error *err)
{
    const char *given = given_dir();
    char path[PATH_MAX];

    int r = dir_path(given, path, sizeof(path));
    r = r < 0 ? err_set_errno(err, r, "its path") : open_own(path, err);
    if (r >= 0 || !given)
        return r;
    return err_wrap(err, r,
            "XDG_RUNTIME_DIR is not usable; set it to a directory of your own, or unset it");
}
