#include "base/buf.h"
#include "base/err.h"
#include "cli/args/env_file.h"
#include "harness.h"
#include <errno.h>

static int keep(void *target, const char *entry, size_t len, struct carrel_error *err)
{
    (void)err;
    buf_add(target, entry, len);
    buf_add_str(target, "|");
    return 0;
}

static int parse(const char *text, size_t len, struct buf *out, struct carrel_error *err)
{
    return env_file_parse(text, len, "vars.env", keep, out, err);
}

TEST(lines_become_entries_as_they_are)
{
    static const char text[] =
            "A=1\n# comment\n\nB=two words \"quoted\" # not a comment\r\nC=\nD==";
    AUTO(buf_finish) struct buf out = BUF_INIT(1000);
    struct carrel_error err;

    CHECK_EQ(parse(text, sizeof(text) - 1, &out, &err), 0);
    CHECK_STR(out.data, "A=1|B=two words \"quoted\" # not a comment|C=|D==|");
}

TEST(an_empty_file_gives_nothing)
{
    AUTO(buf_finish) struct buf out = BUF_INIT(1000);
    struct carrel_error err;

    CHECK_EQ(parse("", 0, &out, &err), 0);
    CHECK_EQ(out.len, 0);
}

TEST(a_bad_line_is_named_without_its_value)
{
    AUTO(buf_finish) struct buf out = BUF_INIT(1000);
    struct carrel_error err;

    CHECK_EQ(parse("A=1\nexport B=secret\n", 20, &out, &err), -EINVAL);
    CHECK_STR(err.message,
            "vars.env:2: 'export B=' is not NAME=VALUE with a NAME of letters, digits and _");
    CHECK_EQ(parse("A\n", 2, &out, &err), -EINVAL);
    CHECK_STR(err.message,
            "vars.env:1: 'A' is not NAME=VALUE with a NAME of letters, digits and _");
    CHECK_EQ(parse("A=x\0y\n", 6, &out, &err), -EINVAL);
    CHECK_STR(err.message, "vars.env:1: a value holds a NUL byte");
}
