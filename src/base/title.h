/*
 * title.h - what others see of our command line.
 *
 * Both take `name`, and overwrite what exec put beside the stack: the words of the command
 * line, which everybody can read, and the environment as it was then. So whoever calls them has
 * copies of what is still needed of both, but for `environ` itself. They return 0 or a negative
 * errno.
 */
#pragma once

/* Allocates nothing. */
int title_set(const char *name);

/* The same, and the name can be seen when that stack is gone (rest.h), where the kernel can. */
int title_move(const char *name);
