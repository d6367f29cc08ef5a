#include "base/err.h"
#include "git/name.h"
#include "harness.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

static struct carrel_error err;

TEST(ordinary_ids_are_accepted)
{
    static const char *const ids[] = { "T-123", "R-456", "a", "0", "x.y_z-1", "lock", "run",
        "runs1", "HEADS", "HEAD-1", "a.b.c",
        "0123456789012345678901234567890123456789012345678901234567890123" };

    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
        CHECK_EQ(name_check_id(ids[i], "task", &err), 0);
}

TEST(an_id_that_could_be_anything_but_an_id_is_refused)
{
    static const char *const ids[] = { "", ".", "..", "-x", "_x", ".x", "a/b", "a..b", "a.",
        "a.lock", "runs", "HEAD", "head", "Head", "a b", "a\nb", "a:b", "a~b", "a^b", "a\\b",
        "a*", "a?", "a[", "@{", "\xc3\xa4", "a\x7f",
        "01234567890123456789012345678901234567890123456789012345678901234" };

    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
        CHECK_EQ(name_check_id(ids[i], "run", &err), -EINVAL);
    CHECK_EQ(name_check_id("a\nb", "run", &err), -EINVAL);
    CHECK_STR(err.message, "run 'a\\x0ab' cannot be used: only letters, digits, '.', '_' "
                           "and '-' are allowed");
}

TEST(a_branch_is_named_after_task_and_run)
{
    char branch[NAME_BRANCH_MAX];
    char id[NAME_ID_MAX + 1];

    name_branch("T-123", "R-456", branch);
    CHECK_STR(branch, "task-T-123-run-R-456");
    CHECK(name_is_run_branch(branch));

    memset(id, 'x', NAME_ID_MAX);
    id[NAME_ID_MAX] = '\0';
    name_branch(id, id, branch);
    CHECK_EQ(strlen(branch), 2 * NAME_ID_MAX + strlen("task--run-"));
    CHECK(name_is_run_branch(branch));
}

TEST(ids_that_look_like_the_space_between_them_are_recognised)
{
    CHECK(name_is_run_branch("task-a-run-b-run-c"));
    CHECK(name_is_run_branch("task-run-run-run"));
    CHECK(name_is_run_branch("task-x-run--run-y"));
}

TEST(other_branches_are_not_taken_for_ones_of_runs)
{
    static const char *const others[] = { "", "main", "task-", "task-1", "task--run-1",
        "task-1-run-", "Task-1-run-1", "task-1-run-1/x", "x/task-1-run-1", "task-1-run-a.lock",
        "task-runs-run-1", "task-1-Run-1" };

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        CHECK(!name_is_run_branch(others[i]));
}

TEST(an_object_id_is_all_of_its_digits_and_nothing_else)
{
    char text[80];

    for (size_t len = 0; len < 70; len++) {
        memset(text, 'a', len);
        text[len] = '\0';
        CHECK_EQ(name_is_oid(text), len == 40 || len == 64);
    }
    CHECK(name_is_oid("0123456789abcdef0123456789abcdef01234567"));
    CHECK(!name_is_oid("0123456789ABCDEF0123456789abcdef01234567"));
    CHECK(!name_is_oid("0123456789abcdef0123456789abcdef0123456g"));
    CHECK(!name_is_oid("0123456789abcdef0123456789abcdef01234567\n"));
}
