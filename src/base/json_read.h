/*
 * json_read.h - reads untrusted JSON in place: nothing is copied or built.
 *
 * A value is a slice of the text. json_read_check() checks everything once; the other functions
 * expect a value that passed, or no value (.text is NULL), which they treat like a value of
 * another kind.
 */
#pragma once
#include "base/buf.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct carrel_error;

#define JSON_READ_DEPTH 256

struct json_value {
    const char *text; /* from its first to its last byte, no space around; NULL: no value */
    size_t len;
};

/*
 * One whole JSON value (RFC 8259), with only space around it: valid UTF-8, valid escapes, no
 * deeper than JSON_READ_DEPTH. -EINVAL with line, column and what was expected. If a member
 * occurs twice, the first one counts.
 */
int json_read_check(
        const char *text, size_t len, struct json_value *out, struct carrel_error *err);

enum json_kind { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };
enum json_kind json_read_kind(struct json_value value); /* no value is JSON_NULL */

/* The member of an object; .text is NULL if there is none or `object` is not an object. */
struct json_value json_read_member(struct json_value object, const char *key);

/* Iterates over the elements: start with at = 0; false after the last. `key` may be NULL. */
bool json_read_next(struct json_value container, size_t *at, struct json_value *key,
        struct json_value *value);

/* A string's characters, decoded, added to `out`. -EINVAL: no string. */
int json_read_string(struct json_value value, struct buf *out);

/* Whether it is a string with these characters. */
bool json_read_equals(struct json_value value, const char *text);

int json_read_u64(struct json_value value, uint64_t *out); /* -EINVAL, -ERANGE */
int json_read_bool(struct json_value value, bool *out);
