/*
 * disks.c - see disks.h.
 *
 * A limit is written for every disk of the machine (cgroup_io.c). It misses what is not on one,
 * such as a server's files, and what the kernel writes for no group in particular: only some
 * file systems say for which group a page is written back.
 */
#include "runtime/local/disks.h"
#include "runtime/local/plan.h"
#include <errno.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#ifndef XFS_SUPER_MAGIC
#define XFS_SUPER_MAGIC 0x58465342
#endif

struct storage storage_of(const struct stat *st, const struct statfs *fs)
{
    /* A file system without a disk of its own gets a device number with this major. */
    return (struct storage){ .file_system = (long)fs->f_type,
        .has_disk = major(st->st_dev) != 0 };
}

bool disks_cover_one(struct storage storage, enum limit limit)
{
    static const struct {
        long file_system;
        bool is_counted_anyway; /* on several disks, on those of its layers, or in memory */
    } known[] = {
        { EXT4_SUPER_MAGIC, false },
        { XFS_SUPER_MAGIC, false },
        { F2FS_SUPER_MAGIC, false },
        { BTRFS_SUPER_MAGIC, true },
        { OVERLAYFS_SUPER_MAGIC, true },
        { TMPFS_MAGIC, true },
        { RAMFS_MAGIC, true },
    };

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (known[i].file_system == storage.file_system)
            return storage.has_disk || known[i].is_counted_anyway;
    /* A process outside of the sandbox reads for FUSE. */
    return storage.has_disk && storage.file_system != FUSE_SUPER_MAGIC &&
           limit == LIMIT_IO_READ;
}

bool disks_cover(const struct plan *plan, enum limit limit, char why[static DISKS_WHY_MAX])
{
    const char *root = plan->root ? plan->root : "/usr";
    struct stat st;
    struct statfs fs;

    const char *missed = NULL;
    for (size_t i = 0; !missed && i < plan->n_sources; i++)
        if ((limit == LIMIT_IO_READ || plan->sources[i].is_writable) &&
                !disks_cover_one(plan->sources[i].storage, limit))
            missed = plan->sources[i].path;
    if (!missed && limit == LIMIT_IO_READ &&
            (stat(root, &st) < 0 || statfs(root, &fs) < 0 ||
                    !disks_cover_one(storage_of(&st, &fs), limit)))
        missed = root;
    if (!missed)
        return true;
    if (limit == LIMIT_IO_READ)
        (void)snprintf(why, DISKS_WHY_MAX, "'%.100s' is not on a disk of this machine", missed);
    else
        (void)snprintf(why, DISKS_WHY_MAX,
                "'%.100s' is on a file system whose writes no cgroup counts; mount it "
                "read-only, "
                "or use one on ext4, xfs, btrfs or f2fs",
                missed);
    return false;
}
