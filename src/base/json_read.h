/*
 * json_read.h - JSON that others wrote, read where it lies: nothing is copied or built.
 *
 * A value is a slice of the text. Everything is checked once, by json_read_check(); the other
 * functions expect a value that passed, or none (.text is NULL), which they answer like a value
 * of another kind.
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
 * One whole JSON value (RFC 8259) and nothing else but space: valid UTF-8, escapes that stand
 * for characters, numbers in JSON's form, no deeper than JSON_READ_DEPTH. -EINVAL with line,
 * column and what was expected. Of a member that comes twice the first counts.
 */
int json_read_check(
        const char *text, size_t len, struct json_value *out, struct carrel_error *err);

enum json_kind { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };
enum json_kind json_read_kind(struct json_value value); /* no value is JSON_NULL */

/* The member of an object; .text is NULL when there is none or it is no object. */
struct json_value json_read_member(struct json_value object, const char *key);

/* The parts one after the other: start with at = 0; false after the last. `key` may be NULL. */
bool json_read_next(struct json_value container, size_t *at, struct json_value *key,
        struct json_value *value);

/* A string's characters, decoded, added to `out`. -EINVAL: no string. */
int json_read_string(struct json_value value, struct buf *out);

/* Whether it is a string and has these characters. */
bool json_read_equals(struct json_value value, const char *text);

int json_read_u64(struct json_value value, uint64_t *out); /* -EINVAL, -ERANGE */
int json_read_bool(struct json_value value, bool *out);
