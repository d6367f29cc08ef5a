/* str_fuzz.c - every text parser in base, with arbitrary bytes. */
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/str.h"
#include "base/utf8.h"
#include "fuzz.h"

static void require(bool holds)
{
    if (!holds)
        abort();
}

/*
 * A refused text leaves the value unchanged; an accepted one is printed to a text that parses
 * to the same value.
 */
static void numbers(const char *text)
{
    struct carrel_error err = { 0 };
    char printed[32];
    uint64_t value = 7;
    uint64_t again = 8;

    require(str_parse_u64(text, &value) == 0 || value == 7);
    value = 7;
    require(str_parse_milli(text, &value, &err) == 0 || (value == 7 && err.message[0]));
    value = 7;
    if (str_parse_size(text, &value, &err) == 0)
        require(str_parse_size(str_size(value, printed), &again, &err) == 0 && again == value);
    else
        require(value == 7 && err.message[0]);
    value = 7;
    if (str_parse_duration(text, &value, &err) == 0)
        require(str_parse_duration(str_duration(value, printed), &again, &err) == 0 &&
                again == value);
    else
        require(value == 7 && err.message[0]);
}

static void is_clean(const unsigned char *text, size_t len)
{
    for (size_t i = 0; i < len;) {
        size_t n = utf8_valid(text + i, len - i);
        require(n > 0 && text[i] >= 0x20 && text[i] != 0x7f);
        i += n;
    }
}

static void escapes(const uint8_t *data, size_t size)
{
    size_t room = size % 50 + 1;
    AUTO(free) char *out = malloc(room); /* exact: one byte too many is seen */
    if (!out)
        return;
    str_escape(data, size, out, room);
    require(strlen(out) < room);
    is_clean((const unsigned char *)out, strlen(out));
}

static void json(const uint8_t *data, size_t size)
{
    AUTO(buf_finish) struct buf out = BUF_INIT(6 * size + 2); /* the worst case: \u0000 */
    struct json writer = { .out = &out };

    json_bytes(&writer, NULL, data ? data : (const uint8_t *)"", size);
    require(!out.is_short && out.len >= 2 && strlen(out.data) == out.len);
    is_clean((const unsigned char *)out.data, out.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(free) char *text = malloc(size + 1);
    if (!text)
        return 0;
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    numbers(text);
    (void)str_is_env_name(text, size);
    escapes(data, size);
    json(data, size);
    return 0;
}
