/* newfile.c - new files and directories. */
#include "git/newfile.h"
#include "base/fd.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

int newfile_write(int dir, const char *name, const void *data, size_t len)
{
    AUTO(fd_close)
    int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd < 0)
        return -errno;
    return fd_write_all(fd, data, len);
}

int newfile_write_text(int dir, const char *name, const char *text)
{
    return newfile_write(dir, name, text, strlen(text));
}

int newfile_make_dirs(int dir, const char *const *names)
{
    for (; *names; names++) {
        if (mkdirat(dir, *names, 0777) < 0 && errno != EEXIST)
            return -errno;
    }
    return 0;
}
