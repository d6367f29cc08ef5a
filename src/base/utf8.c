/* utf8.c - strict UTF-8, as RFC 3629 has it. */
#include "base/utf8.h"
#include "base/auto.h"

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

bool utf8_is_text(const void *data, size_t len)
{
    const unsigned char *at = data;

    while (len > 0) {
        size_t n = utf8_valid(at, len);
        if (n == 0)
            return false;
        at += n;
        len -= n;
    }
    return true;
}

bool utf8_is_control(const unsigned char *c, size_t len)
{
    if (len == 1)
        return *c < 0x20 || *c == 0x7f;
    if (len == 2)
        return c[0] == 0xc2 && c[1] < 0xa0;
    return len == 3 && c[0] == 0xe2 &&
           ((c[1] == 0x80 && c[2] >= 0xa8 && c[2] <= 0xae) ||
                   (c[1] == 0x81 && c[2] >= 0xa6 && c[2] <= 0xa9));
}

bool utf8_is_hidden(const unsigned char *character, size_t len)
{
    static const struct {
        uint32_t first, last;
    } hidden[] = {
        { 0xad, 0xad },
        { 0x61c, 0x61c },
        { 0x180e, 0x180e },
        { 0x200b, 0x200f },
        { 0x2060, 0x2065 },
        { 0x206a, 0x206f },
        { 0xfeff, 0xfeff },
        { 0xfff9, 0xfffb },
        { 0xe0000, 0xe0fff },
    };

    if (len == 1)
        return false;
    const uint32_t c = utf8_decode(character, len);
    for (size_t i = 0; i < ARRAY_LEN(hidden); i++)
        if (c >= hidden[i].first && c <= hidden[i].last)
            return true;
    return false;
}

uint32_t utf8_decode(const unsigned char *character, size_t len)
{
    if (len == 1)
        return *character;
    uint32_t value = *character & (0xffU >> (len + 1));
    for (size_t i = 1; i < len; i++)
        value = value << 6 | (character[i] & 0x3f);
    return value;
}

size_t utf8_encode(uint32_t character, unsigned char out[static 4])
{
    if (character < 0x80) {
        out[0] = (unsigned char)character;
        return 1;
    }
    size_t len = character < 0x800 ? 2 : character < 0x10000 ? 3 : 4;
    for (size_t i = len - 1; i > 0; i--) {
        out[i] = (unsigned char)(0x80 | (character & 0x3f));
        character >>= 6;
    }
    out[0] = (unsigned char)((0xf0U << (4 - len)) | character);
    return len;
}
