/* slot.c - lock files in a directory that only this user can write to. */
#include "runtime/local/slot.h"
#include "base/err.h"
#include "base/fd.h"
#include "runtime/local/cgroup.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define SWEEP_SOME 8 /* on the way to a new sandbox */

/* Where live sandboxes are known: /run/carrel, $XDG_RUNTIME_DIR/carrel, or /tmp/carrel-UID. */
static int dir_path(char *path, size_t size)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    int n;

    if (geteuid() == 0)
        n = snprintf(path, size, "/run/carrel");
    else if (runtime && runtime[0] == '/')
        n = snprintf(path, size, "%s/carrel", runtime);
    else
        n = snprintf(path, size, "/tmp/carrel-%u", (unsigned)geteuid());
    return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

/* /tmp is everybody's: a directory that somebody else made there is not ours. */
static int open_own_dir(int at, const char *path, struct carrel_error *err)
{
    struct stat st;

    if (mkdirat(at, path, 0700) < 0 && errno != EEXIST)
        return err_set_errno(err, -errno, "make '%s'", path);
    AUTO(fd_close) int dir = openat(at, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0 || fstat(dir, &st) < 0)
        return err_set_errno(err, -errno, "open '%s'", path);
    if (st.st_uid != geteuid() || (st.st_mode & 022))
        return err_set(err, -EPERM,
                "'%s' belongs to somebody else or can be written by others; remove it", path);
    return fd_steal(&dir);
}

static int open_dir(struct carrel_error *err)
{
    char path[PATH_MAX];

    int r = dir_path(path, sizeof(path));
    if (r < 0)
        return err_set_errno(err, r, "XDG_RUNTIME_DIR");
    AUTO(fd_close) int dir = open_own_dir(AT_FDCWD, path, err);
    return dir < 0 ? dir : open_own_dir(dir, "slots", err);
}

/*
 * Locks the file `name`, if nobody has it. The file may be unlinked between our open and our
 * lock; a lock on a file without a name guards nothing.
 */
static int lock_file(int dir, const char *name, int flags)
{
    struct stat st;
    AUTO(fd_close) int fd = openat(dir, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | flags, 0600);
    if (fd < 0)
        return -errno;
    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        return -errno;
    if (fstat(fd, &st) < 0)
        return -errno;
    return st.st_nlink == 0 ? -ENOENT : fd_steal(&fd);
}

/* Finishes what a crash left. Returns 1 when there was something, 0 when the slot is live. */
static int sweep_one(int dir, const struct cgroup_place *place, const char *name)
{
    AUTO(fd_close) int lock = lock_file(dir, name, 0);
    if (lock < 0)
        return 0;
    if (cgroup_sweep(place, name) < 0)
        return 0;                 /* busy in the kernel: the next sweep */
    (void)unlinkat(dir, name, 0); /* we hold its lock: nobody else's */
    return 1;
}

static int sweep(int dir, const struct cgroup_place *place, int most)
{
    int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = copy < 0 ? NULL : fdopendir(copy);
    const struct dirent *entry;
    int swept = 0;

    if (!list) {
        fd_close(copy);
        return -errno;
    }
    for (int seen = 0; seen < most && (entry = readdir(list));) {
        if (entry->d_name[0] == '.')
            continue;
        seen++;
        swept += sweep_one(dir, place, entry->d_name);
    }
    (void)closedir(list);
    return swept;
}

int slot_take(struct slot *slot, const struct cgroup_place *place, struct carrel_error *err)
{
    AUTO(fd_close) int dir = open_dir(err);
    if (dir < 0)
        return dir;
    int r = sweep(dir, place, SWEEP_SOME);
    if (r < 0)
        return err_set_errno(err, r, "look for stale sandboxes");

    for (int attempt = 0; attempt < 1000; attempt++) {
        uint32_t number;
        if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number))
            return err_set_errno(err, -errno, "getrandom");
        number %= SLOT_COUNT;
        (void)snprintf(slot->name, sizeof(slot->name), "%u", number);
        int lock = lock_file(dir, slot->name, O_CREAT | O_EXCL);
        if (lock >= 0) {
            slot->number = number;
            slot->lock = lock;
            slot->dir = fd_steal(&dir);
            return 0;
        }
        if (lock != -EEXIST && lock != -EWOULDBLOCK && lock != -ENOENT)
            return err_set_errno(err, lock, "lock slot %u", number);
    }
    return err_set(err, -EAGAIN, "all %u slots for sandboxes are taken", SLOT_COUNT);
}

void slot_release(struct slot *slot)
{
    if (slot->lock >= 0)
        (void)unlinkat(slot->dir, slot->name, 0); /* before the lock goes: it is still ours */
    slot_abandon(slot);
}

void slot_abandon(struct slot *slot)
{
    fd_close(fd_steal(&slot->lock));
    fd_close(fd_steal(&slot->dir));
}

int slot_sweep(const struct cgroup_place *place, struct carrel_error *err)
{
    AUTO(fd_close) int dir = open_dir(err);
    if (dir < 0)
        return dir;
    int r = sweep(dir, place, INT_MAX);
    return r < 0 ? err_set_errno(err, r, "look for stale sandboxes") : r;
}
