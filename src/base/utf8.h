/* utf8.h - which bytes are text. */
#pragma once
#include <stddef.h>

/* Length of the valid UTF-8 sequence at `data` (1 to 4), or 0: overlong, surrogate, cut short.
 */
size_t utf8_valid(const unsigned char *data, size_t len);
