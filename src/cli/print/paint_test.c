#include "base/buf.h"
#include "cli/print/paint.h"
#include "harness.h"
#include <string.h>

static void becomes(enum paint paint, const char *text, const char *expected)
{
    AUTO(buf_finish) struct buf out = BUF_INIT(64U << 10);

    paint_add(&out, paint, text, strlen(text));
    CHECK_STR(out.data, expected);
}

TEST(a_diff_is_painted_by_line)
{
    becomes(PAINT_DIFF,
            "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@ f\n one\n-two\n+three\n"
            "\\ No newline at end of file\n",
            "\x1b[1mdiff --git a/x b/x\x1b[m\n\x1b[1m--- a/x\x1b[m\n\x1b[1m+++ b/x\x1b[m\n"
            "\x1b[36m@@ -1,2 +1,2 @@ f\x1b[m\n one\n\x1b[31m-two\x1b[m\n\x1b[32m+three\x1b[m\n"
            "\\ No newline at end of file\n");
}

TEST(lines_of_a_file_that_look_like_headers_are_lines)
{
    becomes(PAINT_DIFF, "@@ -1 +1,2 @@\n--- a/y\n+++ b/y\n+@@ -9,9 +9,9 @@\ndiff --git a/z b/z",
            "\x1b[36m@@ -1 +1,2 @@\x1b[m\n\x1b[31m--- a/y\x1b[m\n\x1b[32m+++ b/y\x1b[m\n"
            "\x1b[32m+@@ -9,9 +9,9 @@\x1b[m\n\x1b[1mdiff --git a/z b/z\x1b[m");
}

TEST(colours_of_the_run_are_shown)
{
    becomes(PAINT_DIFF, "@@ -0,0 +1 @@\n+\x1b[31m-x\x1b[m\n",
            "\x1b[36m@@ -0,0 +1 @@\x1b[m\n\x1b[32m+\\x1b[31m-x\\x1b[m\x1b[m\n");
    becomes(PAINT_STAT, "commit 1\n\n    \x1b[32mcommit 2\x1b[m\n",
            "\x1b[33mcommit 1\x1b[m\n\n    \\x1b[32mcommit 2\\x1b[m\n");
    becomes(PAINT_NOTHING, "\x1b[32mx\n", "\\x1b[32mx\n");
}

TEST(a_stat_is_painted_at_its_end)
{
    becomes(PAINT_STAT, " a- | 3 ++-\n b | 1 +\n c => d | 0\n    a list +-\n",
            " a- | 3 \x1b[32m++\x1b[m\x1b[31m-\x1b[m\n b | 1 \x1b[32m+\x1b[m\n c => d | 0\n"
            "    a list +-\n");
}
