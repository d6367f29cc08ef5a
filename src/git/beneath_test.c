#include "git/beneath.h"
#include "workspace/git_fixture.h"
#include <errno.h>

#define SET_UP()                                                                               \
    AUTO(fixture_close) struct fixture at = fixture_open();                                    \
    SHELL("mkdir -p root/a/b outside; echo f > root/a/f; ln -s ../outside root/out;"           \
          "ln -s b root/a/in; echo s > outside/secret");                                       \
    AUTO(fd_close) int root = open("root", O_RDONLY | O_DIRECTORY | O_CLOEXEC);                \
    const char *name

TEST(a_path_is_found_below_the_root)
{
    SET_UP();
    struct stat st;
    AUTO(fd_close) int parent = beneath_parent(root, "a/f", &name);
    CHECK(parent >= 0);
    CHECK_STR(name, "f");
    CHECK_EQ(beneath_stat(root, "a/f", &st), 0);
    CHECK(S_ISREG(st.st_mode));
    CHECK_EQ(beneath_stat(root, "out", &st), 0); /* a link itself may be looked at */
    CHECK(S_ISLNK(st.st_mode));
}

TEST(no_link_no_parent_and_no_absolute_path_leads_out)
{
    SET_UP();
    struct stat st;
    char absolute[128];

    (void)snprintf(absolute, sizeof(absolute), "%s/outside/secret", at.path);
    CHECK_EQ(beneath_stat(root, "out/secret", &st), -ELOOP);
    CHECK_EQ(beneath_stat(root, "a/in/x", &st), -ELOOP); /* nor one that stays inside */
    CHECK_EQ(beneath_stat(root, "../outside/secret", &st), -EXDEV);
    CHECK_EQ(beneath_stat(root, "a/../../outside/secret", &st), -EXDEV);
    CHECK_EQ(beneath_stat(root, absolute, &st), -EXDEV);
    CHECK_EQ(beneath_stat(root, "a/f/x", &st), -ENOTDIR);
    CHECK_EQ(beneath_stat(root, "none/x", &st), -ENOENT);
    CHECK_EQ(beneath_make_parent(root, "out/new/x", &name), -ELOOP);
    CHECK_EQ(beneath_make_parent(root, "../new/x", &name), -EXDEV);
    CHECK_STR(printed("ls outside . | tr '\\n' ' '"),
            ".: home outside printed root  outside: secret ");
}

TEST(missing_directories_are_made_and_empty_ones_removed)
{
    SET_UP();
    AUTO(fd_close) int parent = beneath_make_parent(root, "x/y/z/file", &name);
    CHECK(parent >= 0);
    CHECK_STR(name, "file");
    SHELL("test -d root/x/y/z");
    beneath_prune_parents(root, "x/y/z/file");
    SHELL("test ! -e root/x");

    SHELL("mkdir -p root/x; touch root/a/b/keep");
    beneath_prune_parents(root, "x/never/made/file"); /* only the first part was */
    SHELL("test ! -e root/x");
    beneath_prune_parents(root, "a/b/keep");
    beneath_prune_parents(root, "file");
    beneath_prune_parents(root, "out/x/y");
    SHELL("test -f root/a/b/keep; test -d root; test -L root/out");
}
