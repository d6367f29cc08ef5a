/* clock.c - the monotonic clock, and the calendar. */
#include "base/clock.h"
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <time.h>

static uint64_t read_clock(clockid_t clock)
{
    struct timespec now;

    (void)clock_gettime(clock, &now); /* cannot fail with these clocks */
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

uint64_t clock_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

uint64_t clock_boot_ns(void)
{
    return read_clock(CLOCK_BOOTTIME);
}

int clock_poll_ms(uint64_t deadline_ns)
{
    if (deadline_ns == CLOCK_NEVER)
        return -1;
    uint64_t now = clock_ns();
    if (now >= deadline_ns)
        return 0;
    uint64_t ms = (deadline_ns - now + 999999) / 1000000;
    return ms > INT_MAX ? INT_MAX : (int)ms;
}

int clock_poll(struct pollfd *fds, size_t n, uint64_t deadline_ns)
{
    uint64_t now = clock_ns();
    uint64_t left = deadline_ns > now ? deadline_ns - now : 0;
    const struct timespec wait = {
        .tv_sec = (time_t)(left / 1000000000),
        .tv_nsec = (long)(left % 1000000000),
    };

    return ppoll(fds, n, deadline_ns == CLOCK_NEVER ? NULL : &wait, NULL);
}

/* Not with gmtime_r(): its first call reads the time zone file. */
void clock_stamp(const struct timespec *when, char text[static CLOCK_STAMP])
{
    /* Years start in March here, so that the leap day is the last day of the year. */
    const unsigned days_of_400_years = 146097;
    uint64_t seconds = when->tv_sec < 0 ? 0 : (uint64_t)when->tv_sec;
    uint64_t days = seconds / 86400 + 719468; /* since the first of March of the year 0 */
    unsigned of_day = (unsigned)(seconds % 86400);
    uint64_t cycle = days / days_of_400_years;
    unsigned day = (unsigned)(days % days_of_400_years);
    unsigned year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
    day -= 365 * year + year / 4 - year / 100;
    unsigned month = (5 * day + 2) / 153;
    day -= (153 * month + 2) / 5;
    month = month < 10 ? month + 3 : month - 9;
    unsigned shown_year = (unsigned)(400 * cycle + year + (month <= 2)) % 10000;

    (void)snprintf(text, CLOCK_STAMP, "%04u-%02u-%02uT%02u:%02u:%02u.%06uZ", shown_year,
            month % 100, (day + 1) % 100, of_day / 3600 % 100, of_day / 60 % 60, of_day % 60,
            (unsigned)(when->tv_nsec / 1000) % 1000000);
}

void clock_stamp_now(char text[static CLOCK_STAMP])
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now); /* cannot fail with this clock */
    clock_stamp(&now, text);
}
