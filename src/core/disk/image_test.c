#include "base/fd.h"
#include "base/store.h"
#include "base/tree.h"
#include "core/disk/image.h"
#include "harness.h"
#include <carrel/error.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#define LIMIT (UINT64_C(8) << 20)

static struct carrel_error err;
static char top[] = "/tmp/carrel-image-XXXXXX";
static int dir = -1;

static void write_file(int at, const char *name, const char *text)
{
    AUTO(fd_close) int fd = openat(at, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
}

static void check_file(int at, const char *name, const char *text)
{
    char found[64] = "";

    CHECK(fd_read_file(at, name, found, sizeof(found)) >= 0);
    CHECK_STR(found, text);
}

/* A directory with the parts of a workspace. */
static void set_up(void)
{
    (void)memcpy(top + strlen(top) - 6, "XXXXXX", 6);
    CHECK(mkdtemp(top) != NULL);
    dir = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(mkdirat(dir, "upper", 0755) == 0 && mkdirat(dir, "gitupper", 0755) == 0);
    write_file(dir, "upper/given", "1");
    write_file(dir, "gitupper/HEAD", "ref");
}

static void tear_down(void)
{
    AUTO(fd_close) int parent = open("/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC);

    store_unmount(dir);
    fd_close(dir);
    CHECK_EQ(tree_remove(parent, top + strlen("/tmp/"), NULL), 0);
}

/* -1, with the test skipped, where there is no loop device to be had. */
static int begin(void)
{
    set_up();
    int image = disk_image_begin(dir, LIMIT, &err);
    if (image < 0)
        tear_down();
    return image;
}
#define BEGIN(image)                                                                           \
    AUTO(fd_close) int image = begin();                                                        \
    if ((image) < 0)                                                                           \
    SKIP("%s", err.message)

TEST(what_was_there_and_what_is_written_comes_back)
{
    BEGIN(image);
    check_file(image, "tree/upper/given", "1");
    CHECK(unlinkat(image, "tree/upper/given", 0) == 0);
    write_file(image, "tree/upper/made", "2");
    check_file(dir, "upper/given", "1"); /* as before, until the end */
    CHECK_EQ(disk_image_end(dir, &err), 0);
    CHECK(faccessat(dir, "upper/given", F_OK, 0) < 0);
    check_file(dir, "upper/made", "2");
    check_file(dir, "gitupper/HEAD", "ref");
    CHECK(faccessat(dir, "disk.img", F_OK, 0) < 0);
    CHECK(faccessat(dir, "disk", F_OK, 0) < 0);
    tear_down();
}

TEST(a_writer_gets_enospc_at_the_limit)
{
    static const char zeros[64 << 10];
    BEGIN(image);
    uint64_t written = 0;

    CHECK(!disk_image_is_full(image));
    int fd = openat(image, "tree/upper/big", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    ssize_t n;
    while ((n = write(fd, zeros, sizeof(zeros))) > 0)
        written += (uint64_t)n;
    CHECK(n < 0 && errno == ENOSPC);
    fd_close(fd);
    CHECK(written <= LIMIT);
    CHECK(written > LIMIT / 10 * 8);
    CHECK(disk_image_is_full(image));
    tear_down();
}

TEST(a_killed_process_leaves_what_the_next_one_recovers)
{
    BEGIN(image);
    write_file(image, "tree/upper/made", "2");
    fd_close(fd_steal(&image)); /* still mounted, as after a kill */
    CHECK_EQ(disk_image_recover(dir, &err), 0);
    check_file(dir, "upper/made", "2");
    CHECK_EQ(disk_image_recover(dir, &err), 0); /* nothing to do */
    tear_down();
}

TEST(an_end_that_was_interrupted_is_repeated)
{
    BEGIN(image);
    write_file(image, "tree/upper/made", "2");
    fd_close(fd_steal(&image));
    store_unmount(dir); /* the machine was restarted */
    CHECK_EQ(tree_remove(dir, "upper", NULL), 0);
    CHECK_EQ(disk_image_recover(dir, &err), 0);
    check_file(dir, "upper/made", "2");
    tear_down();
}

TEST(an_end_that_was_killed_between_two_files_is_repeated)
{
    BEGIN(image);
    write_file(image, "tree/upper/made", "2");
    fd_close(fd_steal(&image));
    CHECK(mkdirat(dir, "links", 0700) == 0);
    write_file(dir, "links/17", "2");
    write_file(dir, "upper/made", "half");
    CHECK_EQ(disk_image_recover(dir, &err), 0);
    check_file(dir, "upper/made", "2");
    CHECK(faccessat(dir, "links", F_OK, 0) < 0);
    tear_down();
}

static bool is_mounted(void)
{
    struct statx stx;

    return statx(dir, "disk", AT_SYMLINK_NOFOLLOW, 0, &stx) == 0 &&
           (stx.stx_attributes & STATX_ATTR_MOUNT_ROOT);
}

TEST(an_end_that_fails_leaves_the_image_for_the_next_one)
{
    BEGIN(image);
    write_file(image, "tree/upper/made", "2");
    CHECK(renameat(image, "tree", image, "away") == 0);
    CHECK(disk_image_recover(dir, &err) < 0);
    CHECK(!is_mounted());
    CHECK(faccessat(dir, "disk.img", F_OK, 0) == 0);
    CHECK(renameat(image, "away", image, "tree") == 0);
    CHECK_EQ(disk_image_recover(dir, &err), 0);
    check_file(dir, "upper/made", "2");
    CHECK(faccessat(dir, "links", F_OK, 0) < 0);
    tear_down();
}

TEST(an_image_that_was_not_filled_is_not_believed)
{
    set_up();
    write_file(dir, "disk.new", "half");
    CHECK_EQ(disk_image_recover(dir, &err), 0);
    check_file(dir, "upper/given", "1");
    tear_down();
}

/* As a process leaves it that is killed while it copies files into the image. */
static void make_draft(int image)
{
    fd_close(image);
    CHECK(renameat(dir, "disk.img", dir, "disk.new") == 0);
    CHECK(is_mounted());
}

TEST(an_image_that_was_being_filled_is_removed)
{
    BEGIN(image);
    write_file(image, "tree/upper/made", "2");
    make_draft(fd_steal(&image));
    CHECK_EQ(disk_image_recover(dir, &err), 0);
    CHECK(faccessat(dir, "disk", F_OK, 0) < 0);
    CHECK(faccessat(dir, "disk.new", F_OK, 0) < 0);
    CHECK(faccessat(dir, "upper/made", F_OK, 0) < 0);
    check_file(dir, "upper/given", "1");
    tear_down();
}

TEST(an_image_that_was_being_filled_is_replaced)
{
    BEGIN(image);
    make_draft(fd_steal(&image));
    image = disk_image_begin(dir, LIMIT, &err);
    CHECK(image >= 0);
    write_file(image, "tree/upper/made", "2");
    CHECK_EQ(disk_image_end(dir, &err), 0);
    check_file(dir, "upper/made", "2");
    CHECK(faccessat(dir, "disk", F_OK, 0) < 0); /* nothing is mounted under it */
    tear_down();
}

static void check_refused(uint64_t bytes, int code, const char *text)
{
    CHECK_EQ(disk_image_begin(dir, bytes, &err), code);
    CHECK(strstr(err.message, text));
    CHECK(!strchr(err.message, '\n') && !strstr(err.message, "/proc"));
    CHECK(faccessat(dir, "disk.new", F_OK, 0) < 0);
}

TEST(a_limit_that_no_file_system_fits_in_is_refused)
{
    struct statvfs now;

    set_up();
    CHECK_EQ(fstatvfs(dir, &now), 0);
    if (geteuid() != 0) {
        check_refused(LIMIT, -ENOTSUP, "root");
    } else if (disk_image_check(LIMIT, NULL) == 0) {
        check_refused(64 << 10, -EINVAL, "--disk 64K is too small for a file system");
        CHECK(strstr(err.message, "at least 2M"));
        check_refused(((uint64_t)now.f_bavail * now.f_frsize >> 20 << 20) + (UINT64_C(1) << 30),
                -ENOSPC, " does not fit");
        CHECK(strstr(err.message, "--disk ") && strstr(err.message, " free"));
    }
    tear_down();
}

TEST(the_least_limit_has_room_for_files)
{
    set_up();
    AUTO(fd_close) int image = disk_image_begin(dir, UINT64_C(2) << 20, &err);
    if (image < 0) {
        tear_down();
        SKIP("%s", err.message);
    }
    write_file(image, "tree/upper/made", "2");
    CHECK(!disk_image_is_full(image));
    CHECK_EQ(disk_image_end(dir, &err), 0);
    check_file(dir, "upper/made", "2");
    tear_down();
}

/* Else what a program writes is lost when the host's disk is full. */
TEST(the_blocks_of_an_image_are_reserved)
{
    struct stat st;
    struct statfs fs;
    BEGIN(image);

    CHECK_EQ(fstatat(dir, "disk.img", &st, AT_SYMLINK_NOFOLLOW), 0);
    CHECK_EQ(st.st_size, LIMIT);
    CHECK_EQ(fstatfs(dir, &fs), 0);
    tear_down();
    if (fs.f_type == TMPFS_MAGIC)
        SKIP("tmpfs gives back blocks that are zeroed");
    CHECK((uint64_t)st.st_blocks * 512 >= LIMIT);
}
