/* json_read.c - a strict reader of untrusted JSON. */
#include "base/json_read.h"
#include "base/err.h"
#include "base/utf8.h"
#include <errno.h>
#include <string.h>

/* State of json_read_check(), which is a loop with a small stack of its own. */
struct reader {
    const char *text;
    size_t len;
    size_t at;
    const char *expected; /* why it stopped at `at` */
};

static bool expected(struct reader *reader, const char *what)
{
    reader->expected = what;
    return false;
}

/* The next byte; NUL at the end. A NUL inside the text is an error as well. */
static char peek(const struct reader *reader)
{
    return reader->at < reader->len ? reader->text[reader->at] : '\0';
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static void pass_space(struct reader *reader)
{
    while (is_space(peek(reader)))
        reader->at++;
}

/* Four hex digits, or UINT32_MAX. */
static uint32_t hex4(const char *at, size_t len)
{
    uint32_t value = 0;

    if (len < 4)
        return UINT32_MAX;
    for (size_t i = 0; i < 4; i++) {
        char c = at[i];
        uint32_t digit = 0;
        if (is_digit(c))
            digit = (uint32_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            digit = (uint32_t)(c - 'a') + 10;
        else if (c >= 'A' && c <= 'F')
            digit = (uint32_t)(c - 'A') + 10;
        else
            return UINT32_MAX;
        value = value << 4 | digit;
    }
    return value;
}

/*
 * Decodes the escape at `at`, which is a backslash; *used is its length. UINT32_MAX: not a JSON
 * escape, or an unpaired surrogate.
 */
static uint32_t unescape(const char *at, size_t len, size_t *used)
{
    static const char letters[] = "\"\\/bfnrt";
    static const char stands_for[] = "\"\\/\b\f\n\r\t";

    if (len < 2)
        return UINT32_MAX;
    *used = 2;
    const char *letter = at[1] ? strchr(letters, at[1]) : NULL;
    if (letter)
        return (unsigned char)stands_for[letter - letters];
    if (at[1] != 'u')
        return UINT32_MAX;
    uint32_t high = hex4(at + 2, len - 2);
    *used = 6;
    if (high < 0xd800 || high > 0xdfff)
        return high;
    if (high > 0xdbff || len < 12 || at[6] != '\\' || at[7] != 'u')
        return UINT32_MAX;
    uint32_t low = hex4(at + 8, len - 8);
    *used = 12;
    if (low < 0xdc00 || low > 0xdfff)
        return UINT32_MAX;
    return 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
}

static bool check_string(struct reader *reader)
{
    if (peek(reader) != '"')
        return expected(reader, "a string");
    reader->at++;
    while (reader->at < reader->len) {
        const char *at = reader->text + reader->at;
        size_t left = reader->len - reader->at;
        size_t used = 0;
        if (*at == '"') {
            reader->at++;
            return true;
        }
        if ((unsigned char)*at < 0x20)
            return expected(reader, "a control character to be escaped");
        if (*at != '\\')
            used = utf8_valid((const unsigned char *)at, left);
        else if (unescape(at, left, &used) == UINT32_MAX)
            return expected(reader, "a valid escape sequence");
        if (used == 0)
            return expected(reader, "valid UTF-8");
        reader->at += used;
    }
    return expected(reader, "the end of the string");
}

static bool digits(struct reader *reader)
{
    if (!is_digit(peek(reader)))
        return expected(reader, "a digit");
    while (is_digit(peek(reader)))
        reader->at++;
    return true;
}

static bool check_number(struct reader *reader)
{
    if (peek(reader) == '-')
        reader->at++;
    if (peek(reader) == '0')
        reader->at++; /* a digit after it is an error: 01 is not a number */
    else if (!digits(reader))
        return false;
    if (peek(reader) == '.') {
        reader->at++;
        if (!digits(reader))
            return false;
    }
    if (peek(reader) == 'e' || peek(reader) == 'E') {
        reader->at++;
        if (peek(reader) == '+' || peek(reader) == '-')
            reader->at++;
        return digits(reader);
    }
    return true;
}

static bool check_scalar(struct reader *reader)
{
    static const char *const words[] = { "null", "true", "false" };

    if (peek(reader) == '"')
        return check_string(reader);
    if (peek(reader) == '-' || is_digit(peek(reader)))
        return check_number(reader);
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        size_t n = strlen(words[i]);
        if (n <= reader->len - reader->at &&
                memcmp(reader->text + reader->at, words[i], n) == 0) {
            reader->at += n;
            return true;
        }
    }
    return expected(reader, "a value");
}

/* A member's name, and the colon after it. */
static bool check_key(struct reader *reader)
{
    pass_space(reader);
    if (!check_string(reader))
        return false;
    pass_space(reader);
    if (peek(reader) != ':')
        return expected(reader, "':'");
    reader->at++;
    return true;
}

static bool check_value(struct reader *reader)
{
    bool is_object[JSON_READ_DEPTH];
    size_t depth = 0;

    do {
        pass_space(reader);
        char c = peek(reader);
        if (c == '{' || c == '[') {
            if (depth == JSON_READ_DEPTH)
                return expected(reader, "less nesting");
            is_object[depth++] = c == '{';
            reader->at++;
            pass_space(reader);
            if (peek(reader) != (c == '{' ? '}' : ']')) {
                if (c == '{' && !check_key(reader))
                    return false;
                continue; /* with its first element */
            }
        } else if (!check_scalar(reader)) {
            return false;
        }
        /* After a value: the containers that end here, then the comma before the next one. */
        for (; depth > 0; depth--, reader->at++) {
            pass_space(reader);
            bool in_object = is_object[depth - 1];
            if (peek(reader) == ',')
                break;
            if (peek(reader) != (in_object ? '}' : ']'))
                return expected(reader, in_object ? "',' or '}'" : "',' or ']'");
        }
        if (depth > 0) {
            reader->at++;
            if (is_object[depth - 1] && !check_key(reader))
                return false;
        }
    } while (depth > 0);
    return true;
}

static int refuse(const struct reader *reader, struct carrel_error *err)
{
    size_t line = 1;
    size_t column = 1;

    for (size_t i = 0; i < reader->at; i++) {
        if (reader->text[i] == '\n') {
            line++;
            column = 1;
        } else if (((unsigned char)reader->text[i] & 0xc0) != 0x80) {
            column++;
        }
    }
    return err_set(
            err, -EINVAL, "line %zu, column %zu: expected %s", line, column, reader->expected);
}

int json_read_check(
        const char *text, size_t len, struct json_value *out, struct carrel_error *err)
{
    struct reader reader = { .text = text, .len = len };

    pass_space(&reader);
    size_t begin = reader.at;
    if (!check_value(&reader))
        return refuse(&reader, err);
    size_t end = reader.at;
    pass_space(&reader);
    if (reader.at < len) {
        reader.expected = "nothing more";
        return refuse(&reader, err);
    }
    *out = (struct json_value){ text + begin, end - begin };
    return 0;
}

enum json_kind json_read_kind(struct json_value value)
{
    if (!value.text)
        return JSON_NULL;
    switch (value.text[0]) {
    case 'n':
        return JSON_NULL;
    case 't':
    case 'f':
        return JSON_BOOL;
    case '"':
        return JSON_STRING;
    case '[':
        return JSON_ARRAY;
    case '{':
        return JSON_OBJECT;
    default:
        return JSON_NUMBER;
    }
}

static size_t string_length(const char *text)
{
    size_t n = 1;

    while (text[n] != '"')
        n += text[n] == '\\' ? 2 : 1;
    return n + 1;
}

/* The length of the checked value at `text`, at most `len` bytes. */
static size_t value_length(const char *text, size_t len)
{
    size_t depth = 0;
    size_t n = 0;

    if (*text == '"')
        return string_length(text);
    if (*text != '[' && *text != '{') {
        while (n < len && !is_space(text[n]) && !strchr(",]}", text[n]))
            n++;
        return n;
    }
    do {
        if (text[n] == '"') {
            n += string_length(text + n);
            continue;
        }
        if (text[n] == '[' || text[n] == '{')
            depth++;
        else if (text[n] == ']' || text[n] == '}')
            depth--;
        n++;
    } while (depth > 0);
    return n;
}

static struct json_value take(struct json_value container, size_t *at)
{
    struct json_value value = { container.text + *at, 0 };

    value.len = value_length(value.text, container.len - *at);
    *at += value.len;
    return value;
}

static void pass(struct json_value container, size_t *at, char mark)
{
    while (is_space(container.text[*at]) || container.text[*at] == mark)
        (*at)++;
}

bool json_read_next(struct json_value container, size_t *at, struct json_value *key,
        struct json_value *value)
{
    enum json_kind kind = json_read_kind(container);

    if (kind != JSON_ARRAY && kind != JSON_OBJECT)
        return false;
    if (*at == 0)
        *at = 1;
    pass(container, at, ',');
    if (*at >= container.len - 1)
        return false; /* the bracket that ends it */
    struct json_value name = { 0 };
    if (kind == JSON_OBJECT) {
        name = take(container, at);
        pass(container, at, ':');
    }
    if (key)
        *key = name;
    *value = take(container, at);
    return true;
}

struct json_value json_read_member(struct json_value object, const char *key)
{
    struct json_value name;
    struct json_value value;

    if (json_read_kind(object) == JSON_OBJECT)
        for (size_t at = 0; json_read_next(object, &at, &name, &value);)
            if (json_read_equals(name, key))
                return value;
    return (struct json_value){ 0 };
}

/* The next characters of a string at `at`: a slice of it, or a decoded escape in `decoded`. */
static struct json_value piece(struct json_value string, size_t *at, char decoded[static 4])
{
    const char *from = string.text + *at;
    size_t left = string.len - 1 - *at; /* without the quote */
    size_t used = 0;

    if (*from != '\\') {
        const char *escape = memchr(from, '\\', left);
        size_t n = escape ? (size_t)(escape - from) : left;
        *at += n;
        return (struct json_value){ from, n };
    }
    unsigned char bytes[4];
    size_t n = utf8_encode(unescape(from, left, &used), bytes);
    memcpy(decoded, bytes, n);
    *at += used;
    return (struct json_value){ decoded, n };
}

int json_read_string(struct json_value value, struct buf *out)
{
    char decoded[4];

    if (json_read_kind(value) != JSON_STRING)
        return -EINVAL;
    for (size_t at = 1; at < value.len - 1;) {
        struct json_value part = piece(value, &at, decoded);
        buf_add(out, part.text, part.len);
    }
    return 0;
}

bool json_read_equals(struct json_value value, const char *text)
{
    size_t left = strlen(text);
    char decoded[4];

    if (json_read_kind(value) != JSON_STRING)
        return false;
    for (size_t at = 1; at < value.len - 1;) {
        struct json_value part = piece(value, &at, decoded);
        if (part.len > left || memcmp(part.text, text, part.len) != 0)
            return false;
        text += part.len;
        left -= part.len;
    }
    return left == 0;
}

int json_read_u64(struct json_value value, uint64_t *out)
{
    uint64_t number = 0;

    if (json_read_kind(value) != JSON_NUMBER)
        return -EINVAL;
    for (size_t i = 0; i < value.len; i++)
        if (!is_digit(value.text[i]))
            return -EINVAL;
    for (size_t i = 0; i < value.len; i++)
        if (__builtin_mul_overflow(number, 10, &number) ||
                __builtin_add_overflow(number, (uint64_t)(value.text[i] - '0'), &number))
            return -ERANGE;
    *out = number;
    return 0;
}

int json_read_bool(struct json_value value, bool *out)
{
    if (json_read_kind(value) != JSON_BOOL)
        return -EINVAL;
    *out = value.text[0] == 't';
    return 0;
}
