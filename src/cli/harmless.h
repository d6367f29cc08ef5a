/* harmless.h - many lines for a terminal, in which nothing but a few colours has an effect. */
#pragma once
#include <stddef.h>

struct buf;

/*
 * Adds `text` to `out`. Lines, tabs and backslashes stay as they are, and so do the colours
 * that git writes (ESC [ numbers m, of a short list: none that hides text). Every other control
 * character, bidirectional overrides and bytes that are no UTF-8 become \xNN: a file that a run
 * wrote must not move the cursor, change the title or repaint what a reviewer reads.
 */
void harmless_add(struct buf *out, const char *text, size_t len);
