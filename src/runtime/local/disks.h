/* disks.h - whether what a sandbox reads and writes is on disks that a cgroup can limit. */
#pragma once
#include "runtime/runtime.h"

struct plan;
struct stat;
struct statfs;

/* What a directory or file is stored on. */
struct storage {
    long file_system; /* its magic number */
    bool has_disk;    /* its device is one */
};
struct storage storage_of(const struct stat *st, const struct statfs *fs);

#define DISKS_WHY_MAX 256

/* For one of them, with LIMIT_IO_READ or LIMIT_IO_WRITE. */
bool disks_cover_one(struct storage storage, enum limit limit);

/*
 * All that the sandbox can read, or write. If not, `why` names the first that is not. The
 * plan's sources must be open (sources.h).
 */
bool disks_cover(const struct plan *plan, enum limit limit, char why[static DISKS_WHY_MAX]);
