/* suggest.c - edit distance over short words. */
#include "base/suggest.h"
#include <string.h>

#define LONGEST 32

static size_t least(size_t a, size_t b, size_t c)
{
    size_t ab = a < b ? a : b;

    return ab < c ? ab : c;
}

/* Levenshtein, one row at a time. */
static size_t edits(const char *a, size_t a_len, const char *b, size_t b_len)
{
    size_t row[LONGEST + 1];

    for (size_t j = 0; j <= b_len; j++)
        row[j] = j;
    for (size_t i = 1; i <= a_len; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b_len; j++) {
            size_t above = row[j];
            row[j] = least(above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1]));
            diagonal = above;
        }
    }
    return row[b_len];
}

void suggest_offer(
        const char *known, const char *word, size_t len, const char **best, size_t *distance)
{
    size_t known_len = strlen(known);

    if (known_len > LONGEST || len > LONGEST || len < 2)
        return;
    size_t d = edits(known, known_len, word, len);
    if (d < *distance && d <= 1 + len / 4) {
        *distance = d;
        *best = known;
    }
}
