/* harmless_fuzz.c - whatever a run wrote: a terminal finds lines and tabs. */
#include "base/buf.h"
#include "base/utf8.h"
#include "cli/print/harmless.h"
#include "fuzz.h"
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf out = BUF_INIT(64U << 20);

    harmless_add(&out, (const char *)data, size);
    const unsigned char *text = (const unsigned char *)out.data;
    for (size_t i = 0; i < out.len;) {
        size_t n = utf8_valid(text + i, out.len - i);
        if (n == 0 || (utf8_is_control(text + i, n) && text[i] != '\n' && text[i] != '\t'))
            abort();
        i += n;
    }
    buf_finish(out);
    return 0;
}
