/* packed_fuzz.c - a packed-refs file with arbitrary bytes. */
#include "fuzz.h"
#include "git/format/packed.h"

static void require(bool holds)
{
    if (!holds)
        abort();
}

/* Every answer is an offset in the text, and reading terminates. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(packed_close) struct packed packed = { 0 };
    AUTO(free) char *text = malloc(size + 1); /* exact but for the byte that ends a line */
    struct packed_ref ref;

    if (!text)
        return 0;
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\n';
    if (packed_parse(text, size + 1, &packed) < 0)
        return 0;
    for (size_t at = 0; packed_read(&packed, at, &ref); at = ref.next) {
        require(ref.next > at && ref.next <= packed.len);
        require(ref.name >= packed.data && ref.name + ref.name_len <= packed.data + packed.len);
        require(packed_find(&packed, ref.name, ref.name_len) <= packed.len);
    }
    require(packed_find(&packed, "", 0) <= packed.len);
    require(packed_find(&packed, "refs/heads/x", 12) <= packed.len);
    return 0;
}
