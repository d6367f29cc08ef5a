/* paint_fuzz.c - without the colours that we added, a painted text is the harmless one. */
#include "base/buf.h"
#include "cli/print/harmless.h"
#include "cli/print/paint.h"
#include "fuzz.h"
#include <stdlib.h>
#include <string.h>

static void add_unpainted(struct buf *out, const struct buf *painted)
{
    for (size_t i = 0; i < painted->len; i++) {
        if (painted->data[i] == '\x1b') /* ours: a harmless text has none */
            while (painted->data[i] != 'm')
                i++;
        else
            buf_add(out, painted->data + i, 1);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf expected = BUF_INIT(64U << 20);

    harmless_add(&expected, (const char *)data, size);
    for (enum paint paint = PAINT_NOTHING; paint <= PAINT_STAT; paint++) {
        struct buf painted = BUF_INIT(64U << 20);
        struct buf plain = BUF_INIT(64U << 20);

        paint_add(&painted, paint, (const char *)data, size);
        add_unpainted(&plain, &painted);
        if (plain.len != expected.len ||
                (plain.len > 0 && memcmp(plain.data, expected.data, plain.len) != 0))
            abort();
        buf_finish(painted);
        buf_finish(plain);
    }
    buf_finish(expected);
    return 0;
}
