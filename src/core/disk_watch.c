/* disk_watch.c - cheap question often, dear question seldom. */
#include "core/disk_watch.h"
#include "base/clock.h"
#include "base/err.h"
#include "workspace/upper.h"
#include <errno.h>
#include <sys/statvfs.h>

#define NS_PER_MS UINT64_C(1000000)
#define BYTES_PER_INODE 4096U  /* a limit in bytes is also one in files */
#define RATE_PER_MS (4U << 20) /* more than a program writes in that time */
#define LONGEST_MS 100U

static int ask(int dir, uint64_t *bytes, uint64_t *inodes)
{
    struct statvfs st;

    if (fstatvfs(dir, &st) < 0)
        return -errno;
    *bytes = (uint64_t)st.f_bfree * st.f_frsize;
    *inodes = st.f_ffree;
    return 0;
}

static uint64_t lost(uint64_t before, uint64_t now)
{
    return before > now ? before - now : 0;
}

/* The less is left, the sooner. */
static void look_again(struct disk_watch *watch, uint64_t left_bytes)
{
    uint64_t ms = left_bytes / 2 / RATE_PER_MS;

    watch->next_ns = clock_ns() + (ms > LONGEST_MS ? LONGEST_MS : ms ? ms : 1) * NS_PER_MS;
}

/* The figures of the file system first: what is written during the walk counts again. */
static int walk(struct disk_watch *watch, struct carrel_error *err)
{
    int r = ask(watch->dir, &watch->free_bytes, &watch->free_inodes);

    if (r < 0)
        return err_set_errno(err, r, "ask for the free space of a workspace");
    return upper_usage(watch->dir, &watch->used_bytes, &watch->used_inodes, err);
}

int disk_watch_begin(
        struct disk_watch *watch, int dir, uint64_t max_bytes, struct carrel_error *err)
{
    *watch = (struct disk_watch){
        .dir = dir,
        .max_bytes = max_bytes,
        .max_inodes = max_bytes / BYTES_PER_INODE < 1024 ? 1024 : max_bytes / BYTES_PER_INODE,
    };
    int r = walk(watch, err);
    look_again(watch, lost(max_bytes, watch->used_bytes));
    return r;
}

static bool is_spent(const struct disk_watch *watch, uint64_t margin)
{
    return watch->used_bytes + margin >= watch->max_bytes ||
           watch->used_inodes >= watch->max_inodes;
}

bool disk_watch_is_over(struct disk_watch *watch)
{
    uint64_t bytes = 0;
    uint64_t inodes = 0;
    uint64_t left = lost(watch->max_bytes, watch->used_bytes);
    /* What may be written until the program is really ended. */
    uint64_t margin =
            watch->max_bytes / 16 < 4 * RATE_PER_MS ? watch->max_bytes / 16 : 4 * RATE_PER_MS;

    if (ask(watch->dir, &bytes, &inodes) < 0)
        return true; /* a limit that cannot be watched is not held */
    uint64_t gone = lost(watch->free_bytes, bytes);
    if (gone + margin < left &&
            lost(watch->free_inodes, inodes) < lost(watch->max_inodes, watch->used_inodes)) {
        look_again(watch, left - gone - margin);
        return false;
    }
    if (walk(watch, NULL) < 0 || is_spent(watch, margin))
        return true;
    look_again(watch, lost(watch->max_bytes, watch->used_bytes + margin));
    return false;
}
