/* harmless.h - many lines for a terminal, in which nothing has an effect. */
#pragma once
#include <stddef.h>

struct buf;

/*
 * Adds `text` to `out`. Lines, tabs and backslashes stay as they are; all else that
 * str_escape() does not let through becomes \xNN: a file that a run wrote must not move the
 * cursor, change the title or repaint what a reviewer reads.
 */
void harmless_add(struct buf *out, const char *text, size_t len);
