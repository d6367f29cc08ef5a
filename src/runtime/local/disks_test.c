/* disks_test.c - what a limit for disks covers. */
#include "harness.h"
#include "runtime/local/disks.h"
#include "runtime/local/plan.h"
#include <linux/magic.h>
#include <string.h>

#define ON_DISK(magic) ((struct storage){ .file_system = (magic), .has_disk = true })
#define ELSEWHERE(magic) ((struct storage){ .file_system = (magic) })

TEST(reads_count_on_every_file_system_with_a_disk)
{
    CHECK(disks_cover_one(ON_DISK(EXT4_SUPER_MAGIC), LIMIT_IO_READ));
    CHECK(disks_cover_one(ON_DISK(MSDOS_SUPER_MAGIC), LIMIT_IO_READ));
    CHECK(disks_cover_one(ON_DISK(SQUASHFS_MAGIC), LIMIT_IO_READ));
}

TEST(writes_count_where_the_kernel_knows_for_whom_it_writes)
{
    CHECK(disks_cover_one(ON_DISK(EXT4_SUPER_MAGIC), LIMIT_IO_WRITE));
    CHECK(!disks_cover_one(ON_DISK(MSDOS_SUPER_MAGIC), LIMIT_IO_WRITE));
}

TEST(what_spans_disks_or_is_in_memory_is_covered)
{
    static const long known[] = { BTRFS_SUPER_MAGIC, OVERLAYFS_SUPER_MAGIC, TMPFS_MAGIC };

    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        CHECK(disks_cover_one(ELSEWHERE(known[i]), LIMIT_IO_READ));
        CHECK(disks_cover_one(ELSEWHERE(known[i]), LIMIT_IO_WRITE));
    }
}

TEST(what_is_on_no_disk_of_the_machine_is_not)
{
    static const long known[] = { NFS_SUPER_MAGIC, FUSE_SUPER_MAGIC, V9FS_MAGIC };

    CHECK(!disks_cover_one(ON_DISK(FUSE_SUPER_MAGIC), LIMIT_IO_READ)); /* fuseblk */

    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        CHECK(!disks_cover_one(ELSEWHERE(known[i]), LIMIT_IO_READ));
        CHECK(!disks_cover_one(ELSEWHERE(known[i]), LIMIT_IO_WRITE));
    }
}

TEST(the_first_source_that_is_missed_is_named)
{
    char why[DISKS_WHY_MAX] = "";
    struct plan_source sources[] = {
        { .path = (char[]){ "/disk" },
                .storage = ON_DISK(EXT4_SUPER_MAGIC),
                .is_writable = true },
        { .path = (char[]){ "/share" }, .storage = ELSEWHERE(NFS_SUPER_MAGIC) },
    };
    const struct plan plan = { .sources = sources, .n_sources = ARRAY_LEN(sources) };

    CHECK(!disks_cover(&plan, LIMIT_IO_READ, why));
    CHECK_STR(why, "'/share' is not on a disk of this machine");
    CHECK(disks_cover(&plan, LIMIT_IO_WRITE, why)); /* it cannot be written to */
    sources[1].is_writable = true;
    CHECK(!disks_cover(&plan, LIMIT_IO_WRITE, why));
    CHECK(strncmp(why, "'/share' is on a file system whose writes no cgroup counts;", 59) == 0);
}
