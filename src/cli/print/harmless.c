/* harmless.c - what passes to a terminal, and what is shown instead. */
#include "cli/print/harmless.h"
#include "base/buf.h"
#include "base/str.h"

/* How much of `text` str_escape() may see: up to what stays as it is. */
static size_t span(const char *text, size_t len)
{
    size_t n = 0;

    while (n < len && text[n] != '\n' && text[n] != '\t' && text[n] != '\\')
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
            n = 1;
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
