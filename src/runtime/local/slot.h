/*
 * slot.h - a number for each live sandbox, locked as long as it lives.
 *
 * The number names what a crash could leave (its cgroup) and, as root, selects its range of
 * ids, so that no two sandboxes share one. The lock is one byte of one file, held through a
 * descriptor that init has too: when the host process dies it lasts until the sandbox has
 * ended. So a cgroup whose number can be locked has no owner. Its name begins with the device
 * and inode of the lock file: sandboxes that use another lock file (another container, another
 * directory) are not touched.
 */
#pragma once
#include <stdint.h>

struct carrel_error;
struct cgroup_parent;

#define SLOT_COUNT 16384U
#define SLOT_FIRST_ID                                                                          \
    0x10000000U /* host id of id 0 of slot 0; far from accounts and subids                     \
                 */
#define SLOT_NAME_SIZE 48

struct slot {
    uint32_t number;
    char name[SLOT_NAME_SIZE];
    int lock; /* held; -1: none */
};
#define SLOT_INIT                                                                              \
    (struct slot)                                                                              \
    {                                                                                          \
        .lock = -1                                                                             \
    }

/* Takes a free slot of those in `dir` (see rundir.h). */
int slot_take(struct slot *slot, int dir, struct carrel_error *err);

/* Releases it. Safe on a slot that was not taken. */
void slot_release(struct slot *slot);

/* Sweeps a few stale slots, for the holder of one; failures are left to later sweeps. */
void slot_sweep_few(const struct slot *slot, const struct cgroup_parent *where);

/* Sweeps every stale slot; returns how many, or a negative errno. */
int slot_sweep(int dir, const struct cgroup_parent *where, struct carrel_error *err);

/* 1: at least one sandbox that has a slot may be alive; 0: none is. Or a negative errno. */
int slot_any_taken(int dir, struct carrel_error *err);
