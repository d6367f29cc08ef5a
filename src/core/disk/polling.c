/* polling.c - statvfs often, a full walk rarely. */
#include "base/clock.h"
#include "base/err.h"
#include "core/disk/disk.h"
#include "workspace/harvest/upper.h"
#include <errno.h>
#include <sys/statvfs.h>

#define NS_PER_MS UINT64_C(1000000)
#define SHORTEST_NS (10 * NS_PER_MS) /* between two looks while free space falls */
#define LONGEST_NS (50 * NS_PER_MS)  /* otherwise */
#define WALK_PART 4                  /* a walk is followed by so many times its duration */
#define BYTES_PER_INODE 4096U
#define LEAST_INODES 1024U

static uint64_t minus(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

static int look(struct disk *disk)
{
    struct statvfs now;

    if (fstatvfs(disk->dirs[0], &now) < 0)
        return -errno;
    const uint64_t free_bytes = (uint64_t)now.f_bfree * now.f_frsize;
    const uint64_t fell = minus(disk->free_bytes, free_bytes);
    disk->lost_bytes += fell;
    disk->lost_inodes += minus(disk->free_inodes, now.f_ffree);
    disk->free_bytes = free_bytes;
    disk->free_inodes = now.f_ffree;
    disk->pause_ns = fell > 0 ? SHORTEST_NS : 2 * disk->pause_ns;
    if (disk->pause_ns > LONGEST_NS)
        disk->pause_ns = LONGEST_NS;
    return 0;
}

static int walk(struct disk *disk, struct carrel_error *err)
{
    const uint64_t began_ns = clock_ns();
    uint64_t used_bytes = 0;
    uint64_t used_inodes = 0;

    disk->used_bytes = disk->max_bytes; /* a walk that fails is repeated */
    for (size_t i = 0; i < disk->n_dirs; i++) {
        uint64_t bytes;
        uint64_t inodes;
        int r = upper_usage_but_others(disk->dirs[i], disk->max_inodes, &bytes, &inodes, err);
        if (r < 0)
            return r;
        used_bytes += bytes;
        used_inodes += inodes;
    }
    disk->used_bytes = used_bytes;
    disk->used_inodes = used_inodes;
    disk->lost_bytes = disk->lost_inodes = 0;
    const uint64_t now_ns = clock_ns();
    disk->next_walk_ns = now_ns + WALK_PART * (now_ns - began_ns);
    return 0;
}

int disk_add(struct disk *disk, int dir, uint64_t max_bytes, struct carrel_error *err)
{
    const uint64_t inodes = max_bytes / BYTES_PER_INODE;

    if (disk->n_dirs == DISK_DIRS)
        return err_set(err, -E2BIG, "more than %d directories under one limit", DISK_DIRS);
    disk->dirs[disk->n_dirs++] = dir;
    disk->max_bytes = max_bytes;
    disk->max_inodes = inodes < LEAST_INODES ? LEAST_INODES : inodes;
    int r = look(disk);
    if (r < 0)
        return err_set_errno(err, r, "ask for the free space of a workspace");
    disk_wake(disk);
    return walk(disk, err);
}

/* Whether the run may have used up what it had left at the last walk. */
static bool needs_walk(const struct disk *disk)
{
    return disk->lost_bytes >= minus(disk->max_bytes, disk->used_bytes) ||
           disk->lost_inodes >= minus(disk->max_inodes, disk->used_inodes);
}

static bool is_over(struct disk *disk)
{
    return walk(disk, NULL) < 0 || disk->used_bytes >= disk->max_bytes ||
           disk->used_inodes >= disk->max_inodes;
}

void disk_wake(struct disk *disk)
{
    const uint64_t soon_ns = clock_ns() + SHORTEST_NS;

    disk->pause_ns = SHORTEST_NS;
    if (disk->n_dirs > 0 && disk->next_ns > soon_ns)
        disk->next_ns = soon_ns;
}

bool disk_poll(struct disk *disk)
{
    if (disk->n_dirs == 0)
        return false;
    if (look(disk) < 0)
        return true;
    const uint64_t now_ns = clock_ns();
    disk->next_ns = now_ns + disk->pause_ns;
    if (!needs_walk(disk))
        return false;
    if (now_ns < disk->next_walk_ns) {
        disk->next_ns = disk->next_walk_ns;
        return false;
    }
    return is_over(disk);
}

bool disk_is_over(struct disk *disk)
{
    return disk->n_dirs > 0 && (look(disk) < 0 || (needs_walk(disk) && is_over(disk)));
}

bool disk_is_over_exactly(struct disk *disk)
{
    return disk->n_dirs > 0 && (look(disk) < 0 || is_over(disk));
}
