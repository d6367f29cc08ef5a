/* clock.c - the monotonic clock. */
#include "base/clock.h"
#include <limits.h>
#include <time.h>

uint64_t clock_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail with this clock */
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
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
