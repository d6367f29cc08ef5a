/* mounts.c - the kernel's new mount API, in the four ways we use it. */
#include "runtime/local/inside/mounts.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/fd.h"
#include "runtime/local/inside/sys.h"
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

int mounts_clone(int dir, const char *path)
{
    unsigned flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE | AT_NO_AUTOMOUNT;

    return open_tree(dir, path, *path ? flags : flags | AT_EMPTY_PATH);
}

int mounts_restrict(int mount, uint64_t attributes)
{
    struct mount_attr attr = {
        .attr_set = attributes,
        .propagation = MS_PRIVATE,
    };

    return mount_setattr(mount, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof(attr));
}

int mounts_attach(int mount, int dir, const char *path)
{
    unsigned flags = MOVE_MOUNT_F_EMPTY_PATH;

    return move_mount(mount, "", dir, path, *path ? flags : flags | MOVE_MOUNT_T_EMPTY_PATH);
}

/* The kernel's own message about a file system that it refused; see fsopen(2). */
static int refused(int fs, const char *doing, const char *what, struct carrel_error *err)
{
    int code = -errno;
    char words[160];
    ssize_t n = read(fs, words, sizeof(words) - 1);

    if (n < 3) /* "e " and something */
        return err_set_errno(err, code, "%s '%s'", doing, what);
    words[n - (words[n - 1] == '\n')] = '\0';
    return err_set_errno(err, code, "%s '%s': %s", doing, what, words + 2);
}

int mounts_make(const char *type, const struct mount_option *options, size_t n, unsigned attr,
        struct carrel_error *err)
{
    AUTO(fd_close) int fs = fsopen(type, FSOPEN_CLOEXEC);
    if (fs < 0)
        return err_set_errno(err, -errno, "open a file system of type '%s'", type);
    for (size_t i = 0; i < n; i++) {
        unsigned command = options[i].value ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG;
        if (fsconfig(fs, command, options[i].key, options[i].value, 0) < 0)
            return refused(fs, "set file system option", options[i].key, err);
    }
    if (fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return refused(fs, "create a file system of type", type, err);
    int mount = fsmount(fs, FSMOUNT_CLOEXEC, attr);
    return mount < 0 ? err_set_errno(err, -errno, "mount a file system of type '%s'", type)
                     : mount;
}
