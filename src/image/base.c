/*
 * base.c - <state>/images/base: mount points that every sandbox needs, below all layers.
 *
 * Without them a sandbox of an image would have to make /proc or /workspace on the disk, and to
 * remove them again. So a run in an image starts as fast as one without. A layer that has
 * something else at such a path hides it.
 */
#include "image/base.h"
#include "base/err.h"
#include "base/fd.h"
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct {
    char path[32];
    mode_t mode;
} places[] = {
    { IMAGE_BASE, S_IFDIR | 0755 },
    { IMAGE_BASE "/proc", S_IFDIR | 0755 },
    { IMAGE_BASE "/dev", S_IFDIR | 0755 },
    { IMAGE_BASE "/run", S_IFDIR | 0755 },
    { IMAGE_BASE "/tmp", S_IFDIR | 01777 },
    { IMAGE_BASE "/home", S_IFDIR | 0755 },
    { IMAGE_BASE "/home/agent", S_IFDIR | 0700 },
    { IMAGE_BASE "/workspace", S_IFDIR | 0755 },
    { IMAGE_BASE "/etc", S_IFDIR | 0755 },
    { IMAGE_BASE "/etc/hostname", S_IFREG | 0644 },
    { IMAGE_BASE "/etc/hosts", S_IFREG | 0644 },
    { IMAGE_BASE "/etc/resolv.conf", S_IFREG | 0644 },
};

static int make(int store, const char *path, mode_t mode)
{
    int r = S_ISDIR(mode) ? mkdirat(store, path, mode & 07777) : mknodat(store, path, mode, 0);

    if (r < 0)
        return errno == EEXIST ? 0 : -errno;
    /* The caller's umask must not affect the sandbox. */
    return fchmodat(store, path, mode & 07777, 0) < 0 ? -errno : 0;
}

int image_base_make(int store, struct carrel_error *err)
{
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        int r = make(store, places[i].path, places[i].mode);
        if (r < 0)
            return err_set_errno(err, r, "make '%s'", places[i].path);
    }
    return 0;
}
