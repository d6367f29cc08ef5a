/* meta_fuzz.c - a record of any bytes is refused, or read and written to one that says the
 * same. */
#include "base/buf.h"
#include "fuzz.h"
#include "workspace/meta.h"
#include "workspace/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(workspace_free) struct workspace *ws = record_new();
    AUTO(workspace_free) struct workspace *back = record_new();
    AUTO(buf_finish) struct buf once = BUF_INIT(META_MAX);
    AUTO(buf_finish) struct buf twice = BUF_INIT(META_MAX);

    if (!ws || !back || meta_read(ws, (const char *)data, size, NULL) < 0)
        return 0;
    meta_write(ws, &once);
    if (once.is_short || meta_read(back, once.data, once.len, NULL) < 0)
        abort();
    meta_write(back, &twice);
    if (once.len != twice.len || memcmp(once.data, twice.data, once.len) != 0)
        abort();
    return 0;
}
