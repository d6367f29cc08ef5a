/* harmless_fuzz.c - whatever a run wrote: a terminal finds lines, tabs and known colours. */
#include "base/buf.h"
#include "base/utf8.h"
#include "cli/harmless.h"
#include "fuzz.h"
#include <stdlib.h>

/* Length of an ESC [ numbers m that may stand here. */
static size_t color(const unsigned char *at, size_t len)
{
    size_t n = 2;

    if (len < 3 || at[1] != '[')
        return 0;
    while (n < len && n < 7 && ((at[n] >= '0' && at[n] <= '9') || at[n] == ';'))
        n++;
    return n < len && at[n] == 'm' ? n + 1 : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf out = BUF_INIT(64U << 20);

    harmless_add(&out, (const char *)data, size);
    const unsigned char *text = (const unsigned char *)out.data;
    for (size_t i = 0; i < out.len;) {
        size_t n = utf8_valid(text + i, out.len - i);
        if (n == 1 && text[i] == 0x1b)
            n = color(text + i, out.len - i);
        else if (n == 1 &&
                 (text[i] == 0x7f || (text[i] < 0x20 && text[i] != '\n' && text[i] != '\t')))
            n = 0;
        if (n == 0)
            abort();
        i += n;
    }
    buf_finish(out);
    return 0;
}
