/* span.c - seconds in the largest unit of which there are a few. */
#include "cli/print/span.h"
#include "base/auto.h"
#include <inttypes.h>
#include <stdio.h>

#define LONGEST UINT64_C(999999) /* of what a table shows; no time has more days */

const char *span_text(uint64_t seconds, char text[static SPAN_MAX])
{
    static const struct {
        uint64_t upto, unit;
        char letter;
    } steps[] = {
        { 60, 1, 's' },
        { 3600, 60, 'm' },
        { UINT64_C(48) * 3600, 3600, 'h' },
        { UINT64_MAX, UINT64_C(24) * 3600, 'd' },
    };
    size_t i = 0;

    while (seconds >= steps[i].upto && i < ARRAY_LEN(steps) - 1)
        i++;
    const uint64_t n = seconds / steps[i].unit;
    (void)snprintf(text, SPAN_MAX, "%" PRIu64 "%c", n < LONGEST ? n : LONGEST, steps[i].letter);
    return text;
}
