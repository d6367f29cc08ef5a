/* harness_sample.c - one test of each kind of end; tests/unit/harness_test reads the output. */
#include "harness.h"
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

TEST(a_check_that_holds_passes)
{
    CHECK(1 + 1 == 2);
    CHECK_EQ(UINT64_MAX, UINT64_MAX);
    CHECK_EQ(INT64_MIN, INT64_MIN);
    CHECK_STR("same", "same");
    CHECK_STR(NULL, NULL);
    CHECK_MEM("a\0b", 3, "a\0b", 3);
    printf("nobody reads this\n");
}

TEST(a_check_that_does_not_hold_fails)
{
    CHECK(1 + 1 == 3);
}

TEST(minus_one_is_not_the_largest_number)
{
    CHECK_EQ(-1, UINT64_MAX);
}

TEST(a_different_text_is_shown_as_a_literal)
{
    CHECK_STR("say \"a\"\n", "b");
}

TEST(nothing_is_not_an_empty_text)
{
    CHECK_STR(NULL, "");
}

TEST(a_crash_is_one_failure)
{
    (void)raise(SIGKILL);
}

TEST(an_exit_status_is_one_failure)
{
    printf("about to leave");
    exit(3);
}

TEST(a_skip_says_why)
{
    SKIP("needs %s", "the moon");
}

TEST(what_ran_before_does_not_matter)
{
    CHECK(getpid() == getpgrp());
}
