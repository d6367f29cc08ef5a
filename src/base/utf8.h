/* utf8.h - which bytes are text. */
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
 * Valid characters (of `len` bytes) that a terminal obeys, or that break or reorder the line
 * they stand in: the C0 and C1 controls, the line and paragraph separators, the bidirectional
 * overrides and isolates. All of them are below U+10000.
 */
bool utf8_is_control(const unsigned char *character, size_t len);

/*
 * Valid characters that a reader does not see, or that turn the direction of what stands beside
 * them: soft hyphens, zero-width characters, marks of direction, tags. With one of them a name
 * looks like another, or a line says more than it shows.
 */
bool utf8_is_hidden(const unsigned char *character, size_t len);

/* The character that a valid sequence stands for, and the way back: 1 to 4 bytes. */
uint32_t utf8_decode(const unsigned char *character, size_t len);
size_t utf8_encode(uint32_t character, unsigned char out[static 4]);
