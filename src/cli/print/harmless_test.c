#include "base/buf.h"
#include "cli/print/harmless.h"
#include "harness.h"
#include <string.h>

static void becomes(const char *text, const char *expected)
{
    AUTO(buf_finish) struct buf out = BUF_INIT(64U << 10);

    harmless_add(&out, text, strlen(text));
    CHECK_STR(out.data, expected);
}

TEST(a_diff_stays_as_it_is)
{
    becomes("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-\ttwo \\n\n+\tzw\xc3\xb6lf\n",
            "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-\ttwo \\n\n+\tzw\xc3\xb6lf\n");
}

TEST(what_a_terminal_would_obey_is_shown)
{
    becomes("\x1b]0;title\x07", "\\x1b]0;title\\x07");
    becomes("\x1b[2J\x1b[1A\r+ok\n", "\\x1b[2J\\x1b[1A\\x0d+ok\n");
    becomes("a\x08\x7f", "a\\x08\\x7f");
    becomes("\xc2\x9b"
            "31m",
            "\\xc2\\x9b31m");
    becomes("\xe2\x80\xae", "\\xe2\\x80\\xae");
    becomes("\xff", "\\xff");
    becomes("\x1b", "\\x1b");
    becomes("\x1b[", "\\x1b[");
}

TEST(colours_are_shown)
{
    becomes("\x1b[31m-two\x1b[m", "\\x1b[31m-two\\x1b[m");
    becomes("\x1b[8mhidden", "\\x1b[8mhidden");
    becomes("\x1b[30;40mhidden", "\\x1b[30;40mhidden");
    becomes("\x1b[31;8m", "\\x1b[31;8m");
}

TEST(a_long_line_is_not_cut_inside_a_character)
{
    AUTO(buf_finish) struct buf in = BUF_INIT(64U << 10);
    AUTO(buf_finish) struct buf out = BUF_INIT(64U << 10);

    buf_add_str(&in, "x");
    for (int i = 0; i < 3000; i++)
        buf_add_str(&in, "\xe2\x82\xac");
    harmless_add(&out, in.data, in.len);
    CHECK_EQ(out.len, in.len);
    CHECK_STR(out.data, in.data);
}

TEST(bytes_that_are_no_characters_come_to_an_end)
{
    AUTO(buf_finish) struct buf in = BUF_INIT(64U << 10);
    AUTO(buf_finish) struct buf out = BUF_INIT(64U << 10);

    for (int i = 0; i < 3000; i++)
        buf_add_str(&in, "\x80");
    harmless_add(&out, in.data, in.len);
    CHECK_EQ(out.len, 4 * in.len);
}
