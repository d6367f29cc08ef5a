/* utf8.c - strict UTF-8, as RFC 3629 has it. */
#include "base/utf8.h"

size_t utf8_valid(const unsigned char *data, size_t len)
{
    size_t need;
    unsigned low =
            0x80; /* bounds of the second byte: what makes overlongs and surrogates fail */
    unsigned high = 0xbf;

    if (len == 0)
        return 0;
    unsigned first = data[0];
    if (first < 0x80)
        return 1;
    if (first >= 0xc2 && first <= 0xdf)
        need = 2;
    else if (first >= 0xe0 && first <= 0xef)
        need = 3;
    else if (first >= 0xf0 && first <= 0xf4)
        need = 4;
    else
        return 0;
    if (first == 0xe0)
        low = 0xa0;
    if (first == 0xed)
        high = 0x9f;
    if (first == 0xf0)
        low = 0x90;
    if (first == 0xf4)
        high = 0x8f;
    if (len < need || data[1] < low || data[1] > high)
        return 0;
    for (size_t i = 2; i < need; i++)
        if (data[i] < 0x80 || data[i] > 0xbf)
            return 0;
    return need;
}
