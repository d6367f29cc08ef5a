/* paint.h - a diff or log on a terminal: colours of ours, and nothing else that has an effect.
 */
#pragma once
#include <stddef.h>

struct buf;

enum paint {
    PAINT_NOTHING,
    PAINT_DIFF, /* a patch */
    PAINT_STAT, /* lines of --stat, and commits between them */
};

/*
 * Adds `text`, which git wrote without colours, as harmless_add() does. Where git itself
 * paints, its colours cannot be told from those that a run put into a file or a message.
 */
void paint_add(struct buf *out, enum paint paint, const char *text, size_t len);
