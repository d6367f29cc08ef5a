/* harness_sample.c - one test for each way to end; tests/unit/harness_test reads the output. */
#include "harness.h"
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
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

/* A directory in SAMPLE_DIR, with content. */
static void make_dir(void)
{
    char path[128];
    const char *top = getenv("SAMPLE_DIR");

    (void)snprintf(path, sizeof(path), "%s/XXXXXX", top ? top : "/tmp");
    CHECK(test_mkdtemp(path));
    CHECK_EQ(chdir(path), 0);
    CHECK_EQ(mkdir("sub", 0700), 0);
}

TEST(a_crash_leaves_no_directory)
{
    make_dir();
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

/* Only when requested by name: it does not end by itself. */
TEST(an_endless_test_leaves_no_directory_when_the_harness_is_ended)
{
    if (!getenv("SAMPLE_DIR"))
        SKIP("nobody would end it");
    make_dir();
    (void)kill(getppid(), SIGTERM);
    for (;;)
        (void)pause();
}

TEST(what_ran_before_does_not_matter)
{
    CHECK(getpid() == getpgrp());
}
