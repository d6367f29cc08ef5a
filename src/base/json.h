/* json.h - the one JSON writer: the same value always gives the same bytes. */
#pragma once
#include "base/buf.h"
#include <stdbool.h>
#include <stdint.h>

/* Writes compact JSON into `out`, placing commas itself. Nesting is the caller's to balance. */
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
 * Bytes of any kind: what is not valid UTF-8 becomes U+FFFD, and what a terminal would obey
 * (utf8_is_control()) or nobody sees (utf8_is_hidden()) an escape. text == NULL writes null.
 */
void json_bytes(struct json *json, const char *key, const void *text, size_t len);
void json_str(struct json *json, const char *key, const char *text);

/* A value that is JSON already, as it is: one that was checked, or that this writer wrote. */
void json_raw(struct json *json, const char *key, const char *text, size_t len);
