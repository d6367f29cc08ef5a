#include "base/path.h"
#include "harness.h"
#include <limits.h>
#include <string.h>

TEST(a_name_is_one_component)
{
    CHECK(path_is_name("a"));
    CHECK(path_is_name("..."));
    CHECK(path_is_name(".git"));
    CHECK(!path_is_name(""));
    CHECK(!path_is_name("."));
    CHECK(!path_is_name(".."));
    CHECK(!path_is_name("a/b"));
    CHECK(!path_is_name("/"));

    char longest[NAME_MAX + 2];
    memset(longest, 'a', sizeof(longest));
    longest[NAME_MAX] = '\0';
    CHECK(path_is_name(longest));
    longest[NAME_MAX] = 'a';
    longest[NAME_MAX + 1] = '\0';
    CHECK(!path_is_name(longest));
}

TEST(a_clean_path_is_absolute_and_says_each_thing_once)
{
    CHECK(path_is_clean("/"));
    CHECK(path_is_clean("/a"));
    CHECK(path_is_clean("/a/b.c/...d"));
    CHECK(!path_is_clean(""));
    CHECK(!path_is_clean("a"));
    CHECK(!path_is_clean("/a/"));
    CHECK(!path_is_clean("//a"));
    CHECK(!path_is_clean("/a//b"));
    CHECK(!path_is_clean("/a/./b"));
    CHECK(!path_is_clean("/a/../b"));
    CHECK(!path_is_clean("/.."));
}

TEST(below_means_a_whole_component_more)
{
    CHECK(path_is_below("/proc", "/proc"));
    CHECK(path_is_below("/proc/1", "/proc"));
    CHECK(!path_is_below("/process", "/proc"));
    CHECK(!path_is_below("/", "/proc"));
    CHECK(path_is_below("/anything", "/"));
}

static void check_absolute(const char *cwd, const char *path, const char *expected)
{
    char out[PATH_MAX];

    CHECK(path_absolute(cwd, path, out, sizeof(out)));
    CHECK_STR(out, expected);
}

TEST(a_relative_path_is_joined_by_text_alone)
{
    check_absolute("/work", "a", "/work/a");
    check_absolute("/work", ".", "/work");
    check_absolute("/work", "../a/./b//c/", "/a/b/c");
    check_absolute("/work", "../../../..", "/");
    check_absolute("/work", "/x/../y", "/y");
    check_absolute("/", "a", "/a");
}

TEST(a_path_that_does_not_fit_is_refused)
{
    char out[8];

    CHECK(path_absolute("/", "abcdef", out, sizeof(out)));
    CHECK_STR(out, "/abcdef");
    CHECK(!path_absolute("/", "abcdefg", out, sizeof(out)));
}
