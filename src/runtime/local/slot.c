/* slot.c - byte locks in a file that only this user can write to. */
#include "runtime/local/slot.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "runtime/local/cgroup/cgroup.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define SWEEP_FEW 8 /* during the start of a new sandbox */

/* Each slot needs its own open file description: the lock belongs to it, not to the process. */
static int open_locks(int dir, struct carrel_error *err)
{
    int fd = openat(dir, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    return fd < 0 ? err_set_errno(err, -errno, "open the lock of sandboxes") : fd;
}

static int set_lock(int fd, uint32_t number, short type)
{
    struct flock byte = {
        .l_type = type,
        .l_whence = SEEK_SET,
        .l_start = number,
        .l_len = 1,
    };

    return fcntl(fd, F_OFD_SETLK, &byte) < 0 ? -errno : 0;
}

/* Only groups with this prefix are ours. */
static int read_prefix(int locks, char prefix[static SLOT_NAME_SIZE], struct carrel_error *err)
{
    struct stat st;

    if (fstat(locks, &st) < 0)
        return err_set_errno(err, -errno, "stat the lock of sandboxes");
    (void)snprintf(
            prefix, SLOT_NAME_SIZE, "%jx.%jx-", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
    return 0;
}

struct sweep {
    const struct cgroup_parent *where;
    const char *prefix;
    int locks;
    uint32_t own; /* the slot whose lock we hold through `locks`; SLOT_COUNT: none */
    int left;     /* how many more to check */
    int swept;
};

/* Cleans up if a crash left this group. False: stop. */
static bool sweep_one(void *target, const char *name)
{
    struct sweep *sweep = target;
    size_t len = strlen(sweep->prefix);
    uint64_t number;

    if (strncmp(name, sweep->prefix, len) != 0 || str_parse_u64(name + len, &number) < 0 ||
            number >= SLOT_COUNT || number == sweep->own)
        return true;
    if (set_lock(sweep->locks, (uint32_t)number, F_WRLCK) == 0) {
        sweep->swept += cgroup_sweep(sweep->where, name) == 0;
        (void)set_lock(sweep->locks, (uint32_t)number, F_UNLCK); /* closing would do it too */
    }
    return --sweep->left > 0;
}

int slot_take(struct slot *slot, int dir, struct carrel_error *err)
{
    AUTO(fd_close) int locks = open_locks(dir, err);
    if (locks < 0)
        return locks;
    char prefix[SLOT_NAME_SIZE];
    int r = read_prefix(locks, prefix, err);
    if (r < 0)
        return r;
    for (int attempt = 0; attempt < 1000; attempt++) {
        uint32_t number;
        if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number))
            return err_set_errno(err, -errno, "getrandom");
        number %= SLOT_COUNT;
        r = set_lock(locks, number, F_WRLCK);
        if (r == 0) {
            slot->number = number;
            (void)snprintf(slot->name, sizeof(slot->name), "%.33s%u", prefix, number);
            slot->lock = fd_steal(&locks);
            return 0;
        }
        if (r != -EAGAIN && r != -EACCES)
            return err_set_errno(err, r, "lock slot %u", number);
    }
    return err_set(err, -EAGAIN, "all %u slots for sandboxes are in use", SLOT_COUNT);
}

void slot_release(struct slot *slot)
{
    fd_close(fd_steal(&slot->lock));
}

void slot_sweep_few(const struct slot *slot, const struct cgroup_parent *where)
{
    char prefix[SLOT_NAME_SIZE];
    struct sweep sweep = {
        .where = where,
        .prefix = prefix,
        .locks = slot->lock,
        .own = slot->number,
        .left = SWEEP_FEW,
    };

    if (slot->lock >= 0 && read_prefix(slot->lock, prefix, NULL) == 0)
        cgroup_each(where, sweep_one, &sweep);
}

int slot_sweep(int dir, const struct cgroup_parent *where, struct carrel_error *err)
{
    char prefix[SLOT_NAME_SIZE];
    struct sweep sweep = {
        .where = where, .prefix = prefix, .own = SLOT_COUNT, .left = INT_MAX
    };
    AUTO(fd_close) int locks = open_locks(dir, err);
    if (locks < 0)
        return locks;
    int r = read_prefix(locks, prefix, err);
    if (r < 0)
        return r;
    sweep.locks = locks;
    cgroup_each(where, sweep_one, &sweep);
    cgroup_each_lost(where, sweep_one, &sweep);
    return sweep.swept;
}

int slot_any_taken(int dir, struct carrel_error *err)
{
    struct flock all = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = SLOT_COUNT };
    AUTO(fd_close) int locks = open_locks(dir, err);

    if (locks < 0)
        return locks;
    if (fcntl(locks, F_OFD_GETLK, &all) < 0)
        return err_set_errno(err, -errno, "ask for the locks of sandboxes");
    return all.l_type != F_UNLCK;
}
