#include "base/err.h"
#include "base/fd.h"
#include "core/request/mounted.h"
#include "harness.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char top[] = "/tmp/carrel-mounted-test.XXXXXX";

static void enter(void)
{
    CHECK(test_mkdtemp(top));
    CHECK_EQ(chdir(top), 0);
    CHECK_EQ(mkdir("dir", 0700), 0);
    CHECK_EQ(mkdir("other", 0700), 0);
    CHECK_EQ(symlink("other", "link"), 0);
}

static struct carrel_run_options options_of(const struct carrel_mount *mount)
{
    struct carrel_run_options options = CARREL_RUN_OPTIONS_INIT;

    options.mounts = mount;
    options.n_mounts = 1;
    return options;
}

TEST(a_source_is_opened_once_and_has_the_kernels_path)
{
    const struct carrel_mount mount = { .source = "dir", .target = "/x" };
    const struct carrel_run_options options = options_of(&mount);
    AUTO(mounted_finish) struct mounted mounted = MOUNTED_INIT;
    char path[PATH_MAX];
    struct stat st;
    struct stat dir;
    enter();
    CHECK_EQ(stat("dir", &dir), 0);
    CHECK_EQ(mounted_open(&options, NULL, NULL, &mounted, NULL), 0);
    CHECK(getcwd(path, sizeof(path) - 4));
    strcat(path, "/dir");
    CHECK_STR(mounted.list[0].source, path);
    CHECK_EQ(rename("dir", "moved"), 0);
    CHECK_EQ(symlink("/", "dir"), 0);
    CHECK_EQ(fstat(mounted.fds[0], &st), 0);
    CHECK_EQ(st.st_ino, dir.st_ino);
}

TEST(a_link_is_no_source)
{
    const struct carrel_mount mount = { .source = "link", .target = "/x" };
    const struct carrel_run_options options = options_of(&mount);
    AUTO(mounted_finish) struct mounted mounted = MOUNTED_INIT;
    struct carrel_error err = { 0 };
    enter();
    CHECK_EQ(mounted_open(&options, NULL, NULL, &mounted, &err), -ELOOP);
    CHECK(strstr(
            err.message, "--mount: 'link': is a link; carrel does not follow links there"));
}

TEST(another_file_at_the_same_name_is_refused)
{
    const struct carrel_mount mount = { .source = "dir", .target = "/x" };
    const struct carrel_run_options options = options_of(&mount);
    AUTO(mounted_finish) struct mounted first = MOUNTED_INIT;
    AUTO(mounted_finish) struct mounted again = MOUNTED_INIT;
    AUTO(mounted_finish) struct mounted swapped = MOUNTED_INIT;
    AUTO(free) char **ids = NULL;
    struct carrel_error err = { 0 };
    enter();
    CHECK_EQ(mounted_open(&options, NULL, NULL, &first, NULL), 0);
    CHECK_EQ(mounted_ids(&first, &ids, NULL), 0);
    CHECK(!ids[1]);
    CHECK_EQ(mounted_open(&options, NULL, (const char *const *)ids, &again, NULL), 0);
    CHECK_EQ(renameat2(AT_FDCWD, "dir", AT_FDCWD, "other", RENAME_EXCHANGE), 0);
    CHECK_EQ(mounted_open(&options, NULL, (const char *const *)ids, &swapped, &err), -ESTALE);
    CHECK_STR(
            err.message, "mount source 'dir' is not what it was when the sandbox was created");
}
