/* watch_share.c - a locked byte for each share, in a file of the user's run directory. */
#include "core/files/watch_share.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/rundir.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#define MOST 16384 /* of one watch, also where the user may have very many */
#define LEAST 16   /* for a small tree beside many others */
#define SHARES 16
#define FIRST 4 /* part of what the user may have */

static size_t size_of(unsigned share)
{
    char text[32];
    unsigned long all = (unsigned long)MOST * FIRST;

    if (fd_read_file(AT_FDCWD, "/proc/sys/fs/inotify/max_user_watches", text, sizeof(text)) > 0)
        all = strtoul(text, NULL, 10);
    const unsigned long size = (all / FIRST) >> share;
    return size > MOST ? MOST : size < LEAST ? LEAST : size;
}

int watch_share_take(size_t *most, struct carrel_error *err)
{
    AUTO(fd_close) int run = rundir_open_shared(err);
    if (run < 0)
        return run;
    AUTO(fd_close)
    int fd = openat(run, "watches", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_set_errno(err, -errno, "open 'watches' in the run directory");
    for (unsigned share = 0; share < SHARES; share++) {
        struct flock byte = {
            .l_type = F_WRLCK,
            .l_whence = SEEK_SET,
            .l_start = (off_t)share,
            .l_len = 1,
        };
        if (fcntl(fd, F_OFD_SETLK, &byte) == 0) {
            *most = size_of(share);
            return fd_steal(&fd);
        }
        if (errno != EAGAIN && errno != EACCES)
            return err_set_errno(err, -errno, "lock 'watches' in the run directory");
    }
    return err_set(err, -EBUSY,
            "%d trees are watched already, and they share what this user may watch: end one",
            SHARES);
}
