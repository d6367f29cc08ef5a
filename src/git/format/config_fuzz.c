/* config_fuzz.c - a list of arbitrary settings: only those in the table are written. */
#include "base/buf.h"
#include "fuzz.h"
#include "git/format/config.h"

/* Lines begin with a section or with a tab and a name; no value can start a line. */
static void check_lines(const struct buf *text)
{
    for (size_t at = 0; at < text->len;) {
        const char *line = text->data + at;
        const char *end = memchr(line, '\n', text->len - at);
        if (!end || (line[0] != '[' && line[0] != '\t') ||
                memchr(line, '\0', (size_t)(end - line)))
            abort();
        at += (size_t)(end - line) + 1;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct config_terms terms = { .is_sha256 = size % 2 == 0 };
    AUTO(buf_finish) struct buf text = BUF_INIT(1 << 20);

    config_write(&terms, (const char *)data, size, &text);
    if (!text.is_short)
        check_lines(&text);
    (void)config_find((const char *)data, size, "user.name");
    return 0;
}
