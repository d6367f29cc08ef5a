/* dir.c - reading directories. */
#include "base/dir.h"
#include "base/fd.h"
#include <errno.h>
#include <fcntl.h>

DIR *dir_open(int at, const char *name)
{
    AUTO(fd_close) int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);

    if (dir)
        (void)fd_steal(&fd); /* closedir() closes it */
    return dir;
}

void dir_close(DIR *dir)
{
    int saved = errno;

    if (dir)
        (void)closedir(dir); /* it was only read */
    errno = saved;
}

const char *dir_next(DIR *dir)
{
    for (const struct dirent *entry; dir && (entry = readdir(dir));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            return entry->d_name;
    return NULL;
}
