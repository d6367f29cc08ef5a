/* json.c - JSON text, one value after the other. */
#include "base/json.h"
#include "base/utf8.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Length of the ASCII prefix that needs no escape. */
static size_t plain(const unsigned char *text, size_t len)
{
    size_t n = 0;

    while (n < len && text[n] >= 0x20 && text[n] < 0x7f && text[n] != '"' && text[n] != '\\')
        n++;
    return n;
}

/* JSON writes a character beyond U+FFFF as a surrogate pair. */
static void add_number(struct buf *out, uint32_t c)
{
    if (c > 0xffff) {
        buf_addf(out, "\\u%04x", 0xd7c0 + (c >> 10));
        c = 0xdc00 + (c & 0x3ff);
    }
    buf_addf(out, "\\u%04x", c);
}

/* Writes one character that is not plain. Returns how many bytes it took. */
static size_t escape(struct buf *out, const unsigned char *text, size_t len)
{
    size_t n = utf8_valid(text, len);

    if (n == 0) {
        buf_add_str(out, "\xef\xbf\xbd"); /* U+FFFD */
        return 1;
    }
    if (*text == '"' || *text == '\\')
        buf_addf(out, "\\%c", *text);
    else if (*text == '\n')
        buf_add_str(out, "\\n");
    else if (*text == '\t')
        buf_add_str(out, "\\t");
    else if (utf8_is_control(text, n) || utf8_is_hidden(text, n))
        add_number(out, utf8_decode(text, n));
    else
        buf_add(out, text, n);
    return n;
}

static void quote(struct buf *out, const unsigned char *text, size_t len)
{
    buf_add_str(out, "\"");
    while (len > 0) {
        size_t n = plain(text, len);
        if (n > 0)
            buf_add(out, text, n);
        else
            n = escape(out, text, len);
        text += n;
        len -= n;
    }
    buf_add_str(out, "\"");
}

static void begin(struct json *json, const char *key)
{
    if (json->needs_comma)
        buf_add_str(json->out, ",");
    json->needs_comma = true;
    if (key) {
        quote(json->out, (const unsigned char *)key, strlen(key));
        buf_add_str(json->out, ":");
    }
}

void json_object(struct json *json, const char *key)
{
    begin(json, key);
    buf_add_str(json->out, "{");
    json->needs_comma = false;
}

void json_array(struct json *json, const char *key)
{
    begin(json, key);
    buf_add_str(json->out, "[");
    json->needs_comma = false;
}

void json_end_object(struct json *json)
{
    buf_add_str(json->out, "}");
    json->needs_comma = true;
}

void json_end_array(struct json *json)
{
    buf_add_str(json->out, "]");
    json->needs_comma = true;
}

void json_null(struct json *json, const char *key)
{
    begin(json, key);
    buf_add_str(json->out, "null");
}

void json_bool(struct json *json, const char *key, bool value)
{
    begin(json, key);
    buf_add_str(json->out, value ? "true" : "false");
}

void json_u64(struct json *json, const char *key, uint64_t value)
{
    begin(json, key);
    buf_addf(json->out, "%" PRIu64, value);
}

void json_i64(struct json *json, const char *key, int64_t value)
{
    begin(json, key);
    buf_addf(json->out, "%" PRId64, value);
}

/* `parts` / `one` as a decimal with as few places as possible, and at least one. */
static void decimal(
        struct json *json, const char *key, uint64_t parts, uint64_t one, size_t places)
{
    char fraction[16];

    begin(json, key);
    (void)snprintf(fraction, sizeof(fraction), "%0*" PRIu64, (int)places, parts % one);
    for (size_t i = places - 1; i > 0 && fraction[i] == '0'; i--)
        fraction[i] = '\0';
    buf_addf(json->out, "%" PRIu64 ".%s", parts / one, fraction);
}

void json_milli(struct json *json, const char *key, uint64_t milli)
{
    decimal(json, key, milli, 1000, 3);
}

void json_nano(struct json *json, const char *key, uint64_t nano)
{
    decimal(json, key, nano, 1000000000, 9);
}

void json_bytes(struct json *json, const char *key, const void *text, size_t len)
{
    if (!text) {
        json_null(json, key);
        return;
    }
    begin(json, key);
    quote(json->out, text, len);
}

void json_str(struct json *json, const char *key, const char *text)
{
    json_bytes(json, key, text, text ? strlen(text) : 0);
}

void json_raw(struct json *json, const char *key, const char *text, size_t len)
{
    begin(json, key);
    buf_add(json->out, text, len);
}
