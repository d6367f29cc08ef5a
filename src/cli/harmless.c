/* harmless.c - what passes to a terminal, and what is shown instead. */
#include "cli/harmless.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/str.h"

#define ESCAPE '\x1b'

/* Length of the colour that `text` begins with; 0: none, or one that git does not use. */
static size_t color_length(const char *text, size_t len)
{
    static const char *const known[] = {
        "\x1b[m",   /* as before */
        "\x1b[0m",  /* the same */
        "\x1b[1m",  /* bold: headers */
        "\x1b[31m", /* removed */
        "\x1b[32m", /* added */
        "\x1b[33m", /* commit */
        "\x1b[36m", /* place */
        "\x1b[1;31m",
        "\x1b[1;32m",
        "\x1b[1;33m",
        "\x1b[1;34m",
        "\x1b[1;35m",
        "\x1b[1;36m",
    };

    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        size_t n = strlen(known[i]);
        if (n <= len && memcmp(text, known[i], n) == 0)
            return n;
    }
    return 0;
}

/* How much of `text` str_escape() may see: up to what stays as it is. */
static size_t span(const char *text, size_t len)
{
    size_t n = 0;

    while (n < len && text[n] != '\n' && text[n] != '\t' && text[n] != '\\' &&
            !(text[n] == ESCAPE && color_length(text + n, len - n) > 0))
        n++;
    return n;
}

void harmless_add(struct buf *out, const char *text, size_t len)
{
    enum { CHUNK = 1024 };
    char shown[4 * CHUNK + 1];

    while (len > 0) {
        size_t n = span(text, len);
        if (n == 0) {
            n = *text == ESCAPE ? color_length(text, len) : 1;
            buf_add(out, text, n);
        } else {
            /* A cut must not fall into a character: its parts would be no UTF-8. */
            if (n > CHUNK)
                for (n = CHUNK; n > CHUNK - 4 && ((unsigned char)text[n] & 0xc0) == 0x80;)
                    n--;
            buf_add_str(out, str_escape(text, n, shown, sizeof(shown)));
        }
        text += n;
        len -= n;
    }
}
