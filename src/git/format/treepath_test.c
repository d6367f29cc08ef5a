#include "base/buf.h"
#include "git/format/treepath.h"
#include "harness.h"
#include <limits.h>
#include <string.h>

static const char dotgit[] = "a name in it is equivalent to '.git'";

TEST(ordinary_paths_are_allowed)
{
    static const char *const fine[] = { "a", "a/b/c", ".gitignore", ".gitattributes",
        ".github/x", "git", "agit~1", "git~2", "git~10", "...", "a..b", "..a", ".g", "x.git",
        "\xff\xfe", "a\nb", "\xe2\x80\x8c", "-x", "a b ", "x\\y", ".git-x", "\xe2\x80" };

    for (size_t i = 0; i < sizeof(fine) / sizeof(fine[0]); i++)
        CHECK_STR(treepath_why_not(fine[i]), NULL);
}

TEST(whatever_may_mean_dot_git_somewhere_is_refused)
{
    static const char *const bad[] = { ".git", ".GIT", ".gIt", "a/.git/config", "git~1",
        "GIT~1/x", ".git.", ".git ", ".git . .", ".git::$INDEX_ALLOCATION", ".git:x", "git~1:x",
        ".g\xe2\x80\x8cit", "\xef\xbb\xbf.git", ".git\xe2\x81\xaf", "a\\.git", "a\\GIT~1\\b",
        ".GI\xe2\x80\xaaT/x", ".git\\x" };

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        CHECK_STR(treepath_why_not(bad[i]), dotgit);
}

TEST(paths_that_lead_elsewhere_are_refused)
{
    static const char *const bad[] = { "", "/", "/a", "a/", "a//b", ".", "..", "a/../b", "a/.",
        "./a", "..\\x" };

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        CHECK(treepath_why_not(bad[i]));
}

TEST(names_and_paths_have_a_greatest_length)
{
    char text[PATH_MAX + 8];

    memset(text, 'x', sizeof(text));
    text[NAME_MAX] = '\0';
    CHECK_STR(treepath_why_not(text), NULL);
    text[NAME_MAX] = 'x';
    text[NAME_MAX + 1] = '\0';
    CHECK_STR(treepath_why_not(text), "a name in it is longer than 255 bytes");

    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = i % 2 ? '/' : 'x';
    text[PATH_MAX - 1] = '\0';
    CHECK_STR(treepath_why_not(text), NULL);
    text[PATH_MAX - 1] = 'x';
    text[PATH_MAX] = '\0';
    CHECK_STR(treepath_why_not(text), "it is longer than 4095 bytes");
}

TEST(quoting_escapes_what_ends_a_quoted_line)
{
    AUTO(buf_finish) struct buf out = BUF_INIT(256);

    treepath_quote(&out, "a\"b\\c\nd\te\xff");
    CHECK_STR(out.data, "\"a\\\"b\\\\c\\nd\te\xff\"");
    buf_clear(&out);
    treepath_quote(&out, "");
    CHECK_STR(out.data, "\"\"");
}
