/* guard.c - a locked file with a number and a note in it. */
#include "registry/guard.h"
#include "base/err.h"
#include "base/fd.h"
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define NOTE_AT sizeof(uint64_t) /* one byte behind the number */

static int set_lock(int fd, short type)
{
    struct flock all = { .l_type = type, .l_whence = SEEK_SET };
    int r;

    do
        r = fcntl(fd, F_OFD_SETLKW, &all);
    while (r < 0 && errno == EINTR);
    return r < 0 ? -errno : 0;
}

int guard_take(int top, struct carrel_error *err)
{
    AUTO(fd_close)
    int fd = openat(top, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_set_errno(err, -errno, "open the lock of the living sandboxes");
    int r = set_lock(fd, F_WRLCK);
    if (r < 0)
        return err_set_errno(err, r, "lock the list of living sandboxes");
    return fd_steal(&fd);
}

void guard_release(int guard)
{
    if (guard < 0)
        return;
    /* Closing would not do: a child that another thread forked may have the descriptor, too. */
    (void)set_lock(guard, F_UNLCK);
    fd_close(guard);
}

int guard_next_number(int guard, uint64_t *number, struct carrel_error *err)
{
    uint64_t last = 0;

    ssize_t n = pread(guard, &last, sizeof(last), 0);
    if (n < 0)
        return err_set_errno(err, -errno, "read the number of the latest sandbox");
    if (n != sizeof(last))
        last = 0; /* the file is new, or its writer was killed */
    last++;
    if (pwrite(guard, &last, sizeof(last), 0) != sizeof(last))
        return err_set(err, -EIO, "write the number of the latest sandbox");
    *number = last;
    return 0;
}

int guard_note_death(int top)
{
    static const char is_there = 1;
    AUTO(fd_close) int fd = openat(top, "lock", O_WRONLY | O_NOFOLLOW | O_CLOEXEC);

    return fd < 0 || pwrite(fd, &is_there, 1, NOTE_AT) < 0 ? -errno : 0;
}

int guard_take_note(int guard)
{
    static const char is_not_there = 0;
    char note = 1; /* until one is written */

    if (pread(guard, &note, 1, NOTE_AT) < 0)
        return -errno;
    if (note && pwrite(guard, &is_not_there, 1, NOTE_AT) < 0)
        return -errno;
    return note != 0;
}
