#include "base/auto.h"
#include "base/fd.h"
#include "core/disk/disk.h"
#include "harness.h"
#include "runtime/runtime.h"
#include <carrel/error.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct carrel_error err;
static char path[64];

static int make_dir(void)
{
    (void)snprintf(path, sizeof(path), "/tmp/polling.XXXXXX");
    CHECK(mkdtemp(path));
    int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(dir >= 0);
    return dir;
}

static void fill(int dir, const char *name, size_t megabytes)
{
    static char data[1U << 20];
    AUTO(fd_close) int fd = openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    CHECK(fd >= 0);
    memset(data, 'x', sizeof(data));
    for (size_t i = 0; i < megabytes; i++)
        CHECK_EQ(fd_write_all(fd, data, sizeof(data)), 0);
    CHECK_EQ(fsync(fd), 0); /* some file systems know only then what it takes */
}

static void remove_all(int dir, const char *const *names)
{
    for (; *names; names++)
        CHECK_EQ(unlinkat(dir, *names, 0), 0);
    CHECK_EQ(rmdir(path), 0);
}

TEST(a_directory_over_its_limit_is_found)
{
    AUTO(fd_close) int dir = make_dir();
    struct disk disk = DISK_INIT;

    CHECK_EQ(disk_add(&disk, dir, 8U << 20, &err), 0);
    CHECK(!disk_is_over(&disk));
    CHECK(!disk_poll(&disk));
    fill(dir, "half", 4);
    CHECK(!disk_is_over(&disk));
    fill(dir, "rest", 5);
    CHECK(disk_is_over(&disk));
    CHECK_EQ(unlinkat(dir, "rest", 0), 0); /* there is room again */
    CHECK(!disk_is_over(&disk));
    remove_all(dir, (const char *const[]){ "half", NULL });
}

TEST(what_was_there_before_counts)
{
    AUTO(fd_close) int dir = make_dir();
    struct disk disk = DISK_INIT;

    fill(dir, "before", 5);
    CHECK_EQ(disk_add(&disk, dir, 4U << 20, &err), 0);
    CHECK(disk_is_over(&disk));
    remove_all(dir, (const char *const[]){ "before", NULL });
}

TEST(space_that_others_use_does_not_count)
{
    AUTO(fd_close) int dir = make_dir();
    AUTO(fd_close) int own = -1;
    struct disk disk = DISK_INIT;

    CHECK_EQ(mkdirat(dir, "own", 0700), 0);
    own = openat(dir, "own", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(own >= 0);
    CHECK_EQ(disk_add(&disk, own, 4U << 20, &err), 0);
    fill(dir, "other", 20);
    CHECK(!disk_is_over(&disk));
    CHECK_EQ(unlinkat(dir, "own", AT_REMOVEDIR), 0);
    remove_all(dir, (const char *const[]){ "other", NULL });
}

TEST(files_are_limited_in_number)
{
    AUTO(fd_close) int dir = make_dir();
    struct disk disk = DISK_INIT;
    char name[16];

    CHECK_EQ(disk_add(&disk, dir, 1U << 20, &err), 0);
    for (int i = 0; i < 1100; i++) {
        (void)snprintf(name, sizeof(name), "%d", i);
        AUTO(fd_close) int fd = openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        CHECK(fd >= 0);
    }
    CHECK(disk_is_over(&disk));
    CHECK(disk_is_over(&disk)); /* a walk that was cut off is not a small one */
    for (int i = 0; i < 1100; i++) {
        (void)snprintf(name, sizeof(name), "%d", i);
        CHECK_EQ(unlinkat(dir, name, 0), 0);
    }
    CHECK(!disk_is_over(&disk));
    CHECK_EQ(rmdir(path), 0);
}

TEST(without_a_limit_it_is_never_due)
{
    struct disk disk = DISK_INIT;

    disk_wake(&disk);
    CHECK_EQ(disk.next_ns, UINT64_MAX);
    CHECK(!disk_is_over(&disk));
    CHECK(!disk_poll(&disk));
}

TEST(an_exact_limit_is_demanded_by_name)
{
    struct sandbox_spec spec = { 0 };

    CHECK(!disk_must_be_exact(&spec));
    spec.require = PROTECT_BIT(PROTECT_DISK);
    CHECK(disk_must_be_exact(&spec));
}
