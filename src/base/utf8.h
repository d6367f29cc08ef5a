/* utf8.h - validates, decodes and classifies UTF-8. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Length of the valid UTF-8 sequence at `data` (1 to 4), or 0: overlong, surrogate, cut short.
 */
size_t utf8_valid(const unsigned char *data, size_t len);

/* Whether all of it is valid. */
bool utf8_is_text(const void *data, size_t len);

/*
 * Valid characters (of `len` bytes) that control a terminal, or that break or reorder their
 * line: the C0 and C1 controls, the line and paragraph separators, the bidirectional overrides
 * and isolates. All of them are below U+10000.
 */
bool utf8_is_control(const unsigned char *character, size_t len);

/*
 * Valid characters that are invisible, or that change the direction of the text beside them:
 * soft hyphens, zero-width characters, direction marks, tags. With one of them a name looks
 * like another, or a line has more content than it shows.
 */
bool utf8_is_hidden(const unsigned char *character, size_t len);

/* The character that a valid sequence stands for, and the way back: 1 to 4 bytes. */
uint32_t utf8_decode(const unsigned char *character, size_t len);
size_t utf8_encode(uint32_t character, unsigned char out[static 4]);
