/* span.h - how long, for a column of a table. */
#pragma once
#include <stdint.h>

#define SPAN_MAX 16

/* "12s" "5m" "30h" "9d" */
const char *span_text(uint64_t seconds, char text[static SPAN_MAX]);
