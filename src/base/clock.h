/* clock.h - time that only goes forward. */
#pragma once
#include <stdint.h>

#define CLOCK_NEVER UINT64_MAX

uint64_t clock_ns(void); /* CLOCK_MONOTONIC */

/* Milliseconds until `deadline_ns`, rounded up, as poll() takes them; -1 for CLOCK_NEVER. */
int clock_poll_ms(uint64_t deadline_ns);
