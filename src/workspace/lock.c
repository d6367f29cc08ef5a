/* lock.c - the flock of a workspace. Its holder is asked of the kernel: nothing is written, so
 * nothing can be out of date. */
#include "workspace/lock.h"
#include "base/fd.h"
#include "base/str.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

int lock_try(int dir)
{
    AUTO(fd_close) int fd = openat(dir, "lock", O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        return -errno;
    return fd_steal(&fd);
}

/* One line of /proc/locks, see proc(5): "1: FLOCK ADVISORY WRITE 1234 fe:00:5678 0 EOF". */
static bool is_line_of(const char *line, const struct stat *st, int *pid)
{
    unsigned long long inode;
    unsigned dev_major;
    unsigned dev_minor;

    return sscanf(line, "%*u: FLOCK %*s %*s %d %x:%x:%llu", pid, &dev_major, &dev_minor,
                   &inode) == 4 &&
           *pid > 0 && inode == st->st_ino && dev_major == major(st->st_dev) &&
           dev_minor == minor(st->st_dev);
}

static int find_holder(const struct stat *st)
{
    char line[256];
    int pid = 0;
    int found = 0;
    FILE *locks = fopen("/proc/locks", "re");

    if (!locks)
        return 0;
    while (!found && fgets(line, sizeof(line), locks)) {
        if (is_line_of(line, st, &pid))
            found = pid;
    }
    (void)fclose(locks);
    return found;
}

void lock_describe_holder(int dir, char *text, unsigned long size)
{
    struct stat st;
    char path[64];
    char name[64];
    char shown[128];

    (void)snprintf(text, size, "another process");
    if (fstatat(dir, "lock", &st, AT_SYMLINK_NOFOLLOW) < 0)
        return;
    int pid = find_holder(&st);
    if (pid == 0)
        return;
    (void)snprintf(path, sizeof(path), "/proc/%d/comm", pid);
    ssize_t n = fd_read_file(AT_FDCWD, path, name, sizeof(name));
    if (n > 0 && name[n - 1] == '\n')
        n--;
    if (n <= 0)
        (void)snprintf(text, size, "process %d", pid);
    else
        (void)snprintf(text, size, "%s (process %d)",
                str_escape(name, (size_t)n, shown, sizeof(shown)), pid);
}
