#include "base/clock.h"
#include "harness.h"
#include <limits.h>
#include <poll.h>
#include <time.h>

TEST(the_clock_never_goes_back)
{
    uint64_t before = clock_ns();

    CHECK(before > 0);
    for (int i = 0; i < 100000; i++) {
        uint64_t now = clock_ns();
        CHECK(now >= before);
        before = now;
    }
}

TEST(a_wait_without_a_deadline_is_for_ever)
{
    CHECK_EQ(clock_poll_ms(CLOCK_NEVER), -1);
}

TEST(a_deadline_that_has_passed_does_not_wait)
{
    CHECK_EQ(clock_poll_ms(0), 0);
    CHECK_EQ(clock_poll_ms(clock_ns()), 0);
}

TEST(a_part_of_a_millisecond_is_waited_for_and_not_spun_away)
{
    /*
     * However late the kernel schedules this process, the answer is 1 or, after the deadline,
     * 0.
     */
    for (int i = 0; i < 1000; i++) {
        uint64_t deadline = clock_ns() + 900000;
        int ms = clock_poll_ms(deadline);
        CHECK(ms == 1 || (ms == 0 && clock_ns() >= deadline));
    }
}

TEST(milliseconds_are_rounded_up)
{
    int ms = clock_poll_ms(clock_ns() + UINT64_C(3600) * 1000000000 + 1);

    CHECK(ms <= 3600 * 1000 + 1);
    CHECK(ms > 3590 * 1000);
}

TEST(a_deadline_beyond_poll_is_cut_to_the_longest_wait)
{
    CHECK_EQ(clock_poll_ms(CLOCK_NEVER - 1), INT_MAX);
    CHECK_EQ(clock_poll_ms(clock_ns() + (UINT64_C(1) << 62)), INT_MAX);
}

TEST(after_the_wait_the_deadline_has_passed)
{
    uint64_t deadline = clock_ns() + 3 * 1000000;

    while (clock_poll_ms(deadline) > 0)
        CHECK(poll(NULL, 0, clock_poll_ms(deadline)) == 0);
    CHECK(clock_ns() >= deadline);
}

TEST(a_stamp_is_what_the_calendar_says)
{
    char expected[64];
    char text[CLOCK_STAMP];

    /* Every 7 hours of 400 years and more: each day of each kind of year. */
    for (int64_t s = 0; s < 14000000000; s += 25201) {
        struct timespec when = { .tv_sec = s, .tv_nsec = 1999 };
        struct tm tm;
        CHECK(gmtime_r(&when.tv_sec, &tm));
        CHECK(strftime(expected, sizeof(expected), "%Y-%m-%dT%H:%M:%S.000001Z", &tm) > 0);
        clock_stamp(&when, text);
        CHECK_STR(text, expected);
    }
    clock_stamp(&(struct timespec){ .tv_sec = 951868799, .tv_nsec = 999999999 }, text);
    CHECK_STR(text, "2000-02-29T23:59:59.999999Z");
}
