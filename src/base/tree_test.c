#include "base/err.h"
#include "base/fd.h"
#include "base/tree.h"
#include "harness.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct carrel_error err;

/* Creates a directory; its name is in `name`, its parent is returned. Each test removes it. */
static int make_tree(char name[static 32])
{
    char path[] = "/tmp/tree-test-XXXXXX";

    CHECK(test_mkdtemp(path));
    (void)snprintf(name, 32, "%s", path + strlen("/tmp/"));
    int dir = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(dir >= 0);
    return dir;
}

static int open_sub(int dir, const char *name)
{
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    CHECK(fd >= 0);
    return fd;
}

static void make_file(int dir, const char *name)
{
    AUTO(fd_close) int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    CHECK(fd >= 0);
}

static int exists(int dir, const char *name)
{
    return faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Modes do not restrict root: as root, switch to another user for a while. */
#define NOBODY 65534

static void become_ordinary(void)
{
    if (getuid() == 0)
        CHECK_EQ(seteuid(NOBODY), 0);
}

static void become_oneself(void)
{
    CHECK_EQ(seteuid(getuid()), 0);
}

static void give_away(int fd)
{
    if (getuid() == 0)
        CHECK_EQ(fchown(fd, NOBODY, NOBODY), 0);
}

TEST(a_name_that_is_not_there_is_fine)
{
    CHECK_EQ(tree_remove(AT_FDCWD, "no-such-name", &err), 0);
}

TEST(a_file_and_an_empty_directory_go)
{
    char name[32];
    AUTO(fd_close) int dir = make_tree(name);

    CHECK_EQ(tree_remove(dir, name, &err), 0);
    CHECK(!exists(dir, name));
    make_file(dir, name);
    CHECK_EQ(tree_remove(dir, name, &err), 0);
    CHECK(!exists(dir, name));
}

TEST(only_a_directory_without_entries_is_empty)
{
    char name[32];
    AUTO(fd_close) int tmp = make_tree(name);
    AUTO(fd_close) int dir = open_sub(tmp, name);

    CHECK(tree_is_empty(tmp, name));
    make_file(dir, ".file");
    CHECK(!tree_is_empty(tmp, name));
    CHECK(!tree_is_empty(dir, ".file"));
    CHECK(!tree_is_empty(dir, "missing"));
    CHECK_EQ(symlinkat("/nowhere", dir, "link"), 0);
    CHECK(!tree_is_empty(dir, "link"));
    CHECK_EQ(tree_remove(tmp, name, &err), 0);
}

TEST(a_wide_tree_goes)
{
    char name[32];
    char entry[300];
    AUTO(fd_close) int dir = make_tree(name);
    AUTO(fd_close) int top = open_sub(dir, name);

    for (int i = 0; i < 2000; i++) {
        (void)snprintf(entry, sizeof(entry), "%0200d", i); /* long names: many passes */
        make_file(top, entry);
    }
    for (int i = 0; i < 50; i++) {
        (void)snprintf(entry, sizeof(entry), "d%d", i);
        CHECK_EQ(mkdirat(top, entry, 0700), 0);
        AUTO(fd_close) int sub = open_sub(top, entry);
        CHECK_EQ(mkdirat(sub, "same name", 0700), 0);
        AUTO(fd_close) int subsub = open_sub(sub, "same name");
        make_file(subsub, "file");
    }
    CHECK_EQ(tree_remove(dir, name, &err), 0);
    CHECK(!exists(dir, name));
}

/* Deeper than PATH_MAX and than the number of descriptors allow. */
TEST(a_very_deep_tree_goes_with_few_descriptors)
{
    char name[32];
    AUTO(fd_close) int dir = make_tree(name);
    int at = open_sub(dir, name);

    for (int i = 0; i < 5000; i++) {
        CHECK_EQ(mkdirat(at, "deeper", 0700), 0);
        make_file(at, "file");
        int next = open_sub(at, "deeper");
        CHECK_EQ(close(at), 0);
        at = next;
    }
    CHECK_EQ(close(at), 0);

    const struct rlimit few = { 12, 12 };
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
    CHECK_EQ(tree_remove(dir, name, &err), 0);
    CHECK(!exists(dir, name));
}

TEST(directories_that_forbid_everything_go)
{
    char name[32];
    AUTO(fd_close) int dir = make_tree(name);
    AUTO(fd_close) int top = open_sub(dir, name);

    CHECK_EQ(mkdirat(top, "shut", 0700), 0);
    AUTO(fd_close) int shut = open_sub(top, "shut");
    CHECK_EQ(mkdirat(shut, "shut too", 0700), 0);
    AUTO(fd_close) int shut_too = open_sub(shut, "shut too");
    make_file(shut_too, "file");
    make_file(shut, "file");
    CHECK_EQ(fchmod(shut_too, 0), 0);
    CHECK_EQ(fchmod(shut, 0), 0);
    CHECK_EQ(fchmod(top, 0), 0);

    give_away(top);
    give_away(shut);
    give_away(shut_too);
    become_ordinary();
    int r = tree_remove(dir, name, &err);
    become_oneself();
    CHECK_EQ(r, 0);
    CHECK(!exists(dir, name));
}

TEST(links_are_removed_and_never_followed)
{
    char name[32];
    char outside[32];
    char target[64];
    AUTO(fd_close) int dir = make_tree(name);
    AUTO(fd_close) int other = make_tree(outside);
    AUTO(fd_close) int out = open_sub(other, outside);
    AUTO(fd_close) int top = open_sub(dir, name);

    make_file(out, "precious");
    (void)snprintf(target, sizeof(target), "/tmp/%s", outside);
    CHECK_EQ(symlinkat(target, top, "link"), 0);
    CHECK_EQ(mkdirat(top, "sub", 0700), 0);
    AUTO(fd_close) int sub = open_sub(top, "sub");
    CHECK_EQ(symlinkat(target, sub, "link"), 0);
    CHECK_EQ(symlinkat("..", sub, "up"), 0);
    CHECK_EQ(symlinkat("nowhere", sub, "dangling"), 0);
    CHECK_EQ(tree_remove(dir, name, &err), 0);
    CHECK(exists(out, "precious"));

    CHECK_EQ(symlinkat(target, dir, name), 0); /* now the name itself is a link */
    CHECK_EQ(tree_remove(dir, name, &err), 0);
    CHECK(!exists(dir, name));
    CHECK(exists(out, "precious"));
    CHECK_EQ(tree_remove(other, outside, &err), 0);
}

TEST(names_that_the_removal_uses_itself_do_no_harm)
{
    char name[32];
    char entry[32];
    AUTO(fd_close) int dir = make_tree(name);
    AUTO(fd_close) int top = open_sub(dir, name);

    for (int i = 0; i < 6; i++) {
        (void)snprintf(entry, sizeof(entry), ".gone-%d", i);
        if (i % 2) {
            make_file(top, entry);
            continue;
        }
        CHECK_EQ(mkdirat(top, entry, 0700), 0);
        AUTO(fd_close) int sub = open_sub(top, entry);
        CHECK_EQ(mkdirat(sub, "x", 0700), 0);
        AUTO(fd_close) int x = open_sub(sub, "x");
        make_file(x, "y");
    }
    CHECK_EQ(tree_remove(dir, name, &err), 0);
    CHECK(!exists(dir, name));
}

static void remove_with_a_mount_inside(int dir, const char *name, const char *outside)
{
    char from[64];
    char to[64];

    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
        _exit(77);
    (void)snprintf(from, sizeof(from), "/tmp/%s", outside);
    (void)snprintf(to, sizeof(to), "/tmp/%s/sub/mount", name);
    CHECK_EQ(mount(from, to, NULL, MS_BIND, NULL), 0);
    CHECK_EQ(tree_remove(dir, name, &err), -EBUSY);
    CHECK(strstr(err.message, "'mount'"));
    CHECK(strstr(err.message, name));
    _exit(0);
}

TEST(a_mount_inside_is_left_alone_and_the_rest_goes)
{
    char name[32];
    char outside[32];
    int status;
    AUTO(fd_close) int dir = make_tree(name);
    AUTO(fd_close) int other = make_tree(outside);
    AUTO(fd_close) int out = open_sub(other, outside);
    AUTO(fd_close) int top = open_sub(dir, name);

    CHECK_EQ(mkdirat(top, "sub", 0700), 0);
    AUTO(fd_close) int sub = open_sub(top, "sub");
    CHECK_EQ(mkdirat(sub, "mount", 0700), 0);
    make_file(sub, "plain");
    make_file(out, "precious");
    CHECK_EQ(fchmod(out, 0500), 0);

    pid_t pid = fork();
    if (pid == 0)
        remove_with_a_mount_inside(dir, name, outside);
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        struct stat st;
        CHECK(exists(out, "precious"));
        CHECK_EQ(fstat(out, &st), 0);
        CHECK_EQ(st.st_mode & 0777, 0500);
        CHECK(!exists(sub, "plain"));
    }
    CHECK_EQ(tree_remove(dir, name, &err), 0);
    CHECK_EQ(tree_remove(other, outside, &err), 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        SKIP("no user namespace may be made here");
    CHECK_EQ(status, 0);
}

TEST(a_parent_that_may_not_be_written_is_an_error_with_a_reason)
{
    char name[32];
    AUTO(fd_close) int dir = make_tree(name);
    AUTO(fd_close) int top = open_sub(dir, name);

    make_file(top, "file");
    CHECK_EQ(fchmod(top, 0555), 0);
    become_ordinary();
    int r = tree_remove(top, "file", &err);
    become_oneself();
    CHECK_EQ(r, -EACCES);
    CHECK_STR(err.message, "remove tree 'file': Permission denied");
    CHECK_EQ(fchmod(top, 0700), 0);
    CHECK_EQ(tree_remove(dir, name, &err), 0);
}

/* Four levels of directories with two files each. */
static void fill_levels(int dir)
{
    AUTO(fd_close) int at = fcntl(dir, F_DUPFD_CLOEXEC, 3);

    for (int i = 0; i < 4; i++) {
        make_file(at, "a");
        make_file(at, "b");
        CHECK_EQ(mkdirat(at, "deep", 0700), 0);
        CHECK_EQ(mkdirat(at, "flat", 0700), 0);
        int next = open_sub(at, "deep");
        fd_close(at);
        at = next;
    }
}

TEST(several_may_remove_the_same_tree_at_once)
{
    for (int round = 0; round < 100; round++) {
        char name[32];
        AUTO(fd_close) int dir = make_tree(name);
        AUTO(fd_close) int top = open_sub(dir, name);
        pid_t pids[4];
        int status;

        fill_levels(top);
        for (size_t i = 0; i < ARRAY_LEN(pids); i++) {
            pids[i] = fork();
            CHECK(pids[i] >= 0);
            if (pids[i] == 0)
                _exit(tree_remove(dir, name, &err) == 0 ? 0 : 1);
        }
        for (size_t i = 0; i < ARRAY_LEN(pids); i++) {
            CHECK_EQ(waitpid(pids[i], &status, 0), pids[i]);
            CHECK_EQ(status, 0);
        }
        CHECK(!exists(dir, name));
    }
}
