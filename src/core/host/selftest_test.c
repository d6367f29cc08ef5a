/* selftest_test.c - a self-test that cannot fail would prove nothing. */
#include "base/err.h"
#include "core/host/selftest.h"
#include "core/host/selftest_case.h"
#include "harness.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

TEST(what_was_seen_is_safe_on_a_terminal)
{
    struct selftest_row row = { 0 };

    selftest_end(&row, SELFTEST_FAILED, "%s", "a\033[2Jb\nc");
    CHECK_EQ(row.outcome, SELFTEST_FAILED);
    CHECK_STR(row.seen, "a\\x1b[2Jb\\x0ac");
}

TEST(what_was_seen_is_cut_when_it_is_long)
{
    struct selftest_row row = { 0 };
    char text[1000];

    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    selftest_end(&row, SELFTEST_PASSED, "%s", text);
    CHECK_EQ(strlen(row.seen), sizeof(row.seen) - 1);
}

TEST(an_unknown_runtime_is_refused)
{
    struct carrel_error err = { 0 };
    struct selftest *test = NULL;

    CHECK_EQ(selftest_new("proces", "/bin/true", &test, &err), -EINVAL);
    CHECK(!test);
}

TEST(marks_are_gone_when_it_is_over)
{
    struct carrel_error err = { 0 };
    size_t n_open = selftest_count_open();
    struct selftest *test = NULL;

    CHECK_EQ(selftest_new("process", "/bin/true", &test, &err), 0);
    CHECK(getenv("CARREL_TEST_MARK"));
    CHECK(selftest_count_open() > n_open);
    selftest_free(test);
    CHECK(!getenv("CARREL_TEST_MARK"));
    CHECK_EQ(selftest_count_open(), n_open);
}

/* The case by that name, run by itself. */
static enum selftest_outcome outcome_of(struct selftest *test, const char *name)
{
    struct selftest_row row;

    for (test->at = 0; test->at < n_selftest_cases;) {
        if (strcmp(selftest_cases[test->at].name, name) != 0) {
            test->at++;
            continue;
        }
        CHECK(selftest_next(test, &row));
        return row.outcome;
    }
    test_fail(__FILE__, __LINE__, "there is no case '%s'", name);
}

TEST(without_isolation_attempts_succeed_and_cases_fail)
{
    struct carrel_error err = { 0 };
    AUTO(selftest_free) struct selftest *test = NULL;

    CHECK_EQ(selftest_new("process", "/bin/true", &test, &err), 0);
    CHECK_EQ(outcome_of(test, "a program runs"), SELFTEST_PASSED);
    CHECK_EQ(outcome_of(test, "its exit status comes back"), SELFTEST_PASSED);
    CHECK_EQ(outcome_of(test, "files of the host"), SELFTEST_FAILED);
    CHECK_EQ(outcome_of(test, "processes of the host"), SELFTEST_FAILED);
    CHECK_EQ(outcome_of(test, "kill -9 -1"), SELFTEST_FAILED); /* and we are still here */
    CHECK_EQ(outcome_of(test, "set-uid bit"), SELFTEST_FAILED);
    CHECK_EQ(outcome_of(test, "disk, in bytes"), SELFTEST_FAILED);
    CHECK_EQ(outcome_of(test, "mount"), SELFTEST_FAILED); /* the probe answers nonsense */
    CHECK_EQ(outcome_of(test, "no substitute without consent"), SELFTEST_PASSED);
}
