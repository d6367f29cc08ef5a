/* result_file.c - what a run gave, in a file of the caller's. */
#include "cli/print/result_file.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/fd.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

/*
 * Without waiting for the reader of a pipe: the signals that would end the wait are blocked,
 * and the program has ended. Once it is open, nothing is lost.
 */
static int write_to(const char *path, const void *data, size_t len, struct carrel_error *err)
{
    AUTO(fd_close) int fd = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    int r = fd < 0 || fcntl(fd, F_SETFL, 0) < 0 ? -errno : fd_write_all(fd, data, len);
    if (r == -ENXIO)
        return err_set(err, r, "write '%s': the FIFO has no reader", path);
    return r < 0 ? err_set_errno(err, r, "write '%s'", path) : 0;
}

int result_file_write(const char *path, const void *data, size_t len, struct carrel_error *err)
{
    struct stat there;
    struct stat target;

    if (lstat(path, &there) < 0 || S_ISREG(there.st_mode) || S_ISDIR(there.st_mode))
        return fd_replace_file(path, data, len, 0644, err); /* which refuses a directory */
    if (stat(path, &target) < 0)
        return err_set_errno(err, -errno, "write '%s'", path);
    if (S_ISFIFO(target.st_mode) || S_ISCHR(target.st_mode))
        return write_to(path, data, len, err);
    if (S_ISLNK(there.st_mode) && S_ISREG(target.st_mode))
        return err_set(err, -ELOOP,
                "write '%s': it is a symbolic link, which is not followed or replaced", path);
    return err_set(
            err, -EINVAL, "write '%s': it is not a regular file and is not replaced", path);
}
