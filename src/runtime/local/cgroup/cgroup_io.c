/*
 * cgroup_io.c - see cgroup_io.h.
 *
 * The kernel has no limit for all disks together, and none for a file system: it is written for
 * each whole disk, to all of them. So nothing has to be known about what lies between a file
 * and its disk: a partition, a volume, a pool of several disks, a loop device.
 */
#include "runtime/local/cgroup/cgroup_io.h"
#include "base/err.h"
#include "base/fd.h"
#include "runtime/local/cgroup/cgroup.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define V1_TOP "/sys/fs/cgroup/blkio"
#define DISKS "/sys/block"

static const struct io_setting {
    enum limit limit;
    const char *v1; /* the file; "MAJ:MIN bytes" */
    const char *v2; /* the key in io.max; "MAJ:MIN key=bytes" */
} settings[] = {
    { LIMIT_IO_READ, "blkio.throttle.read_bps_device", "rbps" },
    { LIMIT_IO_WRITE, "blkio.throttle.write_bps_device", "wbps" },
};

/*
 * v1 counts what a process itself hands to a disk. Reads are; most writes are left to the
 * kernel's own threads, which no group counts.
 */
static bool can_v1(enum limit limit, char why[static CGROUP_WHY_MAX])
{
    if (limit == LIMIT_IO_WRITE)
        (void)snprintf(why, CGROUP_WHY_MAX,
                "cgroup v1 does not count writes through the page cache; boot with cgroup v2");
    else if (faccessat(AT_FDCWD, V1_TOP "/blkio.throttle.read_bps_device", F_OK, 0) < 0 ||
             faccessat(AT_FDCWD, V1_TOP, W_OK, AT_EACCESS) < 0)
        (void)snprintf(why, CGROUP_WHY_MAX,
                "the cgroup v1 hierarchy " V1_TOP " cannot be used (%s); mount it writable, on "
                "a kernel built with CONFIG_BLK_DEV_THROTTLING=y",
                strerrordesc_np(errno));
    else
        return true;
    return false;
}

static bool can_v2(const char *parent, char why[static CGROUP_WHY_MAX])
{
    char path[1024];

    (void)snprintf(path, sizeof(path), "%s/cgroup.subtree_control", parent);
    if (cgroup_lists(parent, "cgroup.subtree_control", "io") ||
            (cgroup_lists(parent, "cgroup.controllers", "io") &&
                    faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0))
        return true;
    if (geteuid() == 0)
        (void)snprintf(why, CGROUP_WHY_MAX,
                "%.120s lacks the io controller; use a kernel built with CONFIG_BLK_CGROUP=y, "
                "and in a container one that passes it on",
                parent);
    else
        (void)snprintf(why, CGROUP_WHY_MAX,
                "the cgroup that is delegated to this user lacks the io controller; as root: "
                "'systemctl edit user@.service', [Service] Delegate=memory pids cpu io, and "
                "log in anew");
    return false;
}

bool cgroup_can_limit_io(
        const struct cgroup_parent *where, enum limit limit, char why[static CGROUP_WHY_MAX])
{
    switch (where->version) {
    case CGROUP_V1:
        return can_v1(limit, why);
    case CGROUP_V2:
        return can_v2(where->parent, why);
    case CGROUP_NONE:
        break;
    }
    (void)snprintf(why, CGROUP_WHY_MAX, "%s", where->why);
    return false;
}

static int write_one(const struct cgroup *group, const struct io_setting *setting,
        const char *disk, uint64_t value, struct carrel_error *err)
{
    const bool is_v1 = group->version == CGROUP_V1;
    const char *file = is_v1 ? setting->v1 : "io.max";
    char path[160];
    char text[80];

    (void)snprintf(path, sizeof(path), "%s/%s", group->name, file);
    if (is_v1)
        (void)snprintf(text, sizeof(text), "%s %" PRIu64, disk, value);
    else if (value)
        (void)snprintf(text, sizeof(text), "%s %s=%" PRIu64, disk, setting->v2, value);
    else
        (void)snprintf(text, sizeof(text), "%s %s=max", disk, setting->v2);
    int r = fd_write_file(group->parent[is_v1 ? CGROUP_IO : 0], path, text);
    if (r == -ENOENT)
        return err_set(err, -ENOTSUP,
                "the %s limit cannot be enforced here: the cgroup has no %s; use a kernel "
                "built with CONFIG_BLK_DEV_THROTTLING=y",
                limit_name(setting->limit), file);
    if (r == 0 || r == -ENODEV || r == -ENXIO) /* the disk was removed meanwhile */
        return 0;
    return err_set_errno(err, r, "write '%s' to %s of the cgroup", text, file);
}

static int write_all(const struct cgroup *group, const struct io_setting *setting,
        uint64_t value, struct carrel_error *err)
{
    DIR *disks = opendir(DISKS);
    const struct dirent *entry;
    char path[280];
    char disk[32];
    int r = 0;

    if (!disks)
        return err_set_errno(err, -errno, "list the disks in " DISKS);
    while (r == 0 && (entry = readdir(disks))) {
        (void)snprintf(path, sizeof(path), "%s/dev", entry->d_name);
        /* Without a number it is a path of another disk, and nothing can use it alone. */
        if (entry->d_name[0] == '.' ||
                fd_read_file(dirfd(disks), path, disk, sizeof(disk)) <= 0)
            continue;
        disk[strcspn(disk, "\n")] = '\0';
        r = write_one(group, setting, disk, value, err);
    }
    (void)closedir(disks);
    return r;
}

int cgroup_set_io(const struct cgroup *group, const struct sandbox_limits *limits,
        struct carrel_error *err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < ARRAY_LEN(settings); i++)
        if (limits->value[settings[i].limit])
            r = write_all(group, &settings[i], limits->value[settings[i].limit], err);
    return r;
}

/* All disks have the same value: the first line tells it. 0: none. */
static uint64_t read_one(const struct cgroup *group, const struct io_setting *setting)
{
    const bool is_v1 = group->version == CGROUP_V1;
    char path[160];
    char text[256];

    (void)snprintf(path, sizeof(path), "%s/%s", group->name, is_v1 ? setting->v1 : "io.max");
    if (fd_read_file(group->parent[is_v1 ? CGROUP_IO : 0], path, text, sizeof(text)) <= 0)
        return 0;
    const char *at = strstr(text, is_v1 ? " " : setting->v2);
    return at ? strtoull(at + (is_v1 ? 1 : strlen(setting->v2) + 1), NULL, 10) : 0;
}

int cgroup_update_io(const struct cgroup *group, const struct sandbox_limits *limits,
        unsigned which, struct carrel_error *err)
{
    uint64_t before[ARRAY_LEN(settings)] = { 0 };
    size_t done = 0;
    int r = 0;

    for (; r == 0 && done < ARRAY_LEN(settings); done++) {
        const struct io_setting *setting = &settings[done];
        if (!(which & LIMIT_BIT(setting->limit)))
            continue;
        before[done] = read_one(group, setting);
        r = write_all(group, setting, limits->value[setting->limit], err);
    }
    while (r < 0 && done-- > 0)
        if (which & LIMIT_BIT(settings[done].limit))
            (void)write_all(group, &settings[done], before[done], NULL);
    return r;
}
