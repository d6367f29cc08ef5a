/*
 * disk.h - the disk limit of directories on the host's file systems.
 *
 * If an exact limit is demanded, an image has the directories (image.h). Otherwise they are
 * polled: statvfs() costs a microsecond, a walk through the directories costs what they hold.
 * So free space is looked at often, and the walk is done only when the file system has lost as
 * much as the run may still use; until then the run cannot be over its limit. A run can exceed
 * the limit by what it writes between two looks. Files that are unlinked and still open are not
 * counted.
 */
#pragma once
#include "runtime/runtime.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct carrel_error;

#define DISK_DIRS 3

struct disk {
    int dirs[DISK_DIRS]; /* not owned; all on one file system */
    size_t n_dirs;       /* 0: nothing is limited */
    uint64_t max_bytes;
    uint64_t max_inodes;
    uint64_t used_bytes; /* at the last walk */
    uint64_t used_inodes;
    uint64_t free_bytes; /* of the file system, at the last look */
    uint64_t free_inodes;
    uint64_t lost_bytes; /* by the file system since the last walk; what was freed is not
                            subtracted, since others may have freed it */
    uint64_t lost_inodes;
    uint64_t pause_ns;     /* between two looks */
    uint64_t next_walk_ns; /* not before, so that large trees do not cost all the time */
    uint64_t next_ns;      /* when disk_poll() is due; UINT64_MAX: never */
};
#define DISK_INIT                                                                              \
    (struct disk)                                                                              \
    {                                                                                          \
        .next_ns = UINT64_MAX                                                                  \
    }

/* Whether an exact limit is demanded: polling is none. */
static inline bool disk_must_be_exact(const struct sandbox_spec *spec)
{
    return (spec->require & PROTECT_BIT(PROTECT_DISK)) != 0;
}

/* Limits what is below `dir`, together with the directories that were added before. */
int disk_add(struct disk *disk, int dir, uint64_t max_bytes, struct carrel_error *err);

/*
 * To be called when `next_ns` has come. True: the limit is exceeded, or it cannot be measured;
 * the caller ends the programs.
 */
bool disk_poll(struct disk *disk);

/* The same at once, whenever it is called. */
bool disk_is_over(struct disk *disk);

/* The same with a walk in any case: free space that others give back can hide what was taken.
 */
bool disk_is_over_exactly(struct disk *disk);

/* Something may write from now on: disk_poll() is due soon. */
void disk_wake(struct disk *disk);
