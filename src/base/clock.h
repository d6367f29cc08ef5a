/* clock.h - monotonic time, and the time of day as text. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#define CLOCK_NEVER UINT64_MAX

uint64_t clock_ns(void);      /* CLOCK_MONOTONIC */
uint64_t clock_boot_ns(void); /* CLOCK_BOOTTIME: includes time while the machine sleeps */

/* Milliseconds until `deadline_ns`, rounded up, as poll() takes them; -1 for CLOCK_NEVER. */
int clock_poll_ms(uint64_t deadline_ns);

/* poll() with nanosecond resolution: it does not wait up to a millisecond too long. */
struct pollfd;
int clock_poll(struct pollfd *fds, size_t n, uint64_t deadline_ns);

/* The time of day: "2026-01-31T23:59:59.000001Z". Independent of locale and time zone. */
#define CLOCK_STAMP 28
struct timespec;
void clock_stamp(const struct timespec *when, char text[static CLOCK_STAMP]);
void clock_stamp_now(char text[static CLOCK_STAMP]);
