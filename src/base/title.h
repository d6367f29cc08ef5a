/* title.h - what others see of our command line. */
#pragma once

/*
 * Takes `name`, and overwrites what exec put beside the stack: the words of the command line,
 * which everybody can read, and the environment as it was then. So whoever calls this has
 * copies of what is still needed of both, but for `environ` itself. Allocates nothing. Returns
 * 0 or a negative errno.
 */
int title_set(const char *name);
