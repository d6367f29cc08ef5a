/* store.c - locks of open files (F_OFD_SETLK): they go with the process, whatever ends it. */
#include "layer/store.h"
#include "base/err.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

int layer_store_open(const char *state, struct carrel_error *err)
{
    char path[PATH_MAX];

    if (snprintf(path, sizeof(path), "%s/layers", state) >= (int)sizeof(path))
        return err_set_errno(err, -ENAMETOOLONG, "'%s'", state);
    int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0 && errno == ENOENT) {
        if (mkdir(path, 0700) < 0 && errno != EEXIST)
            return err_set_errno(err, -errno, "create '%s'", path);
        dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    return dir < 0 ? err_set_errno(err, -errno, "open '%s'", path) : dir;
}

static int set_lock(int fd, short type, int command)
{
    struct flock lock = { .l_type = type, .l_whence = SEEK_SET };
    int r;

    do {
        r = fcntl(fd, command, &lock);
    } while (r < 0 && errno == EINTR);
    if (r == 0)
        return 0;
    return errno == EACCES || errno == EAGAIN ? -EWOULDBLOCK : -errno;
}

/* Waits for a lock on a file of the store. */
static int await_lock(int layers, const char *name, short type, struct carrel_error *err)
{
    AUTO(fd_close)
    int fd = openat(layers, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_set_errno(err, -errno, "open '%s' of the layers", name);
    int r = set_lock(fd, type, F_OFD_SETLKW);
    return r < 0 ? err_set_errno(err, r, "lock '%s' of the layers", name) : fd_steal(&fd);
}

int layer_store_pass(int layers, enum store_gate gate, struct carrel_error *err)
{
    return await_lock(layers, ".gate", gate == GATE_ALONE ? F_WRLCK : F_RDLCK, err);
}

int layer_store_take_turn(int layers, struct carrel_error *err)
{
    return await_lock(layers, ".merge", F_WRLCK, err);
}

int layer_store_lock_shared(int layer)
{
    AUTO(fd_close)
    int fd = openat(layer, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    int r = set_lock(fd, F_RDLCK, F_OFD_SETLK);
    return r < 0 ? r : fd_steal(&fd);
}

int layer_store_lock_alone(int lock)
{
    return set_lock(lock, F_WRLCK, F_OFD_SETLK);
}
