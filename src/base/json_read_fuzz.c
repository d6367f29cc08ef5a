/* json_read_fuzz.c - what passes the check can be read; a refusal names the position. */
#include "base/err.h"
#include "base/json.h"
#include "base/json_read.h"
#include "base/utf8.h"
#include "fuzz.h"

static void require(bool holds)
{
    if (!holds)
        abort();
}

/* A decoded string, written and read again, is the same. */
static void round_trip(struct json_value value)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(1 << 20);
    AUTO(buf_finish) struct buf written = BUF_INIT(6 << 20);
    AUTO(buf_finish) struct buf again = BUF_INIT(1 << 20);
    struct json writer = { .out = &written };
    struct json_value read;

    require(json_read_string(value, &text) == 0);
    if (text.is_short)
        return;
    require(utf8_is_text(text.data ? text.data : "", text.len));
    json_bytes(&writer, NULL, text.data ? text.data : "", text.len);
    require(json_read_check(written.data, written.len, &read, NULL) == 0);
    require(json_read_string(read, &again) == 0);
    require(again.len == text.len);
    require(!again.data || !text.data || memcmp(again.data, text.data, text.len) == 0);
    if (text.data && strlen(text.data) == text.len)
        require(json_read_equals(value, text.data));
}

static void walk(struct json_value value, int depth)
{
    struct json_value key;
    struct json_value part;
    struct json_value same;
    uint64_t number;
    bool flag;

    require(json_read_check(value.text, value.len, &same, NULL) == 0);
    require(same.text == value.text && same.len == value.len);
    (void)json_read_u64(value, &number);
    (void)json_read_bool(value, &flag);
    (void)json_read_member(value, "a");
    if (json_read_kind(value) == JSON_STRING)
        round_trip(value);
    if (depth == 0) /* each level is checked again, which is quadratic in the depth */
        return;
    for (size_t at = 0; json_read_next(value, &at, &key, &part);) {
        if (json_read_kind(value) == JSON_OBJECT)
            round_trip(key);
        walk(part, depth - 1);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct carrel_error err = { 0 };
    struct json_value value;

    if (json_read_check((const char *)data, size, &value, &err) == 0)
        walk(value, 6);
    else
        require(err.message[0]);
    return 0;
}
