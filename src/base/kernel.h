/* kernel.h - the running kernel: its version, and this boot of it. */
#pragma once
#include <stdbool.h>

/* "6.1.0-13-amd64" is at least 5.15. False if it is not a version. */
bool kernel_release_is(const char *release, unsigned major, unsigned minor);

/* The same for the running kernel. */
bool kernel_is(unsigned major, unsigned minor);

struct carrel_error;

#define KERNEL_BOOT_ID_MAX 40

/* A text that differs after each boot. */
int kernel_boot_id(char id[static KERNEL_BOOT_ID_MAX], struct carrel_error *err);
