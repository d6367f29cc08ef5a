/* kernel.h - which Linux this is. */
#pragma once
#include <stdbool.h>

/* "6.1.0-13-amd64" is at least 5.15. False for what is no version. */
bool kernel_release_is(const char *release, unsigned major, unsigned minor);

/* The same of the one that runs. */
bool kernel_is(unsigned major, unsigned minor);
