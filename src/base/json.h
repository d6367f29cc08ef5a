/* json.h - the JSON writer: the same value always gives the same bytes. */
#pragma once
#include "base/buf.h"
#include <stdbool.h>
#include <stdint.h>

/* Writes compact JSON into `out` and places the commas. The caller balances the nesting. */
struct json {
    struct buf *out;
    bool needs_comma;
};

void json_object(
        struct json *json, const char *key); /* key: NULL inside an array or at the top */
void json_array(struct json *json, const char *key);
void json_end_object(struct json *json);
void json_end_array(struct json *json);
void json_null(struct json *json, const char *key);
void json_bool(struct json *json, const char *key, bool value);
void json_u64(struct json *json, const char *key, uint64_t value);
void json_i64(struct json *json, const char *key, int64_t value);
void json_milli(struct json *json, const char *key, uint64_t milli); /* 1500 -> 1.5 */
void json_nano(struct json *json, const char *key, uint64_t nano);   /* billionths */

/*
 * Any bytes: invalid UTF-8 becomes U+FFFD; characters that control a terminal
 * (utf8_is_control()) or are invisible (utf8_is_hidden()) are escaped. text == NULL writes
 * null.
 */
void json_bytes(struct json *json, const char *key, const void *text, size_t len);
void json_str(struct json *json, const char *key, const char *text);

/* Writes `text` unchanged: JSON that was checked, or that this writer produced. */
void json_raw(struct json *json, const char *key, const char *text, size_t len);
