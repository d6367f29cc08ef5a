#include "base/err.h"
#include "git/delta.h"
#include "harness.h"
#include <errno.h>

#define OID_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define OID_0 "0000000000000000000000000000000000000000"

static struct carrel_error err;
static struct delta_list list;

#define PARSE(text) delta_parse(text, sizeof(text) - 1, &list, &err)

TEST(what_git_prints_is_read_and_sorted)
{
    CHECK_EQ(PARSE(":100644 000000 " OID_A " " OID_0 " D\0z\nline\0"
                   ":000000 120000 " OID_0 " " OID_A " A\0dir/a\0"),
            0);
    CHECK_EQ(list.n, 2);
    CHECK_STR(list.items[0].path, "dir/a");
    CHECK_EQ(list.items[0].old.mode, 0);
    CHECK_EQ(list.items[0].new.mode, DELTA_LINK);
    CHECK_STR(list.items[0].new.oid, OID_A);
    CHECK_STR(list.items[1].path, "z\nline");
    CHECK(delta_find(&list, "z\nline") == &list.items[1]);
    CHECK(delta_find(&list, "dir") == NULL);
    CHECK(!delta_same(&list.items[0].old, &list.items[0].new));
    delta_list_finish(&list);
    CHECK_EQ(PARSE(""), 0);
    CHECK_EQ(list.n, 0);
}

TEST(an_unmerged_path_counts_once_and_has_no_new_side)
{
    CHECK_EQ(PARSE(":100644 100644 " OID_A " " OID_A " M\0a\0"
                   ":000000 000000 " OID_0 " " OID_0 " U\0a\0"),
            0);
    CHECK_EQ(list.n, 1);
    CHECK_EQ(list.items[0].new.mode, 0);
    delta_list_finish(&list);
}

TEST(anything_else_is_refused)
{
    CHECK_EQ(PARSE("garbage\0a\0"), -EBADMSG);
    CHECK_EQ(PARSE(":100644 100644 short " OID_A " M\0a\0"), -EBADMSG);
    CHECK_EQ(PARSE(":100644 100644 " OID_A " " OID_A " M\0"), -EBADMSG);
    CHECK_EQ(PARSE(":100644 100644 " OID_A " " OID_A " M\0a"), -EBADMSG);
    CHECK_EQ(PARSE(":100644 100644 " OID_A " " OID_A " M\0\0"), -EBADMSG);
}
