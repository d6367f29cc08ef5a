/* str.c - text to numbers and back. */
#include "base/str.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/utf8.h"
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <strings.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

int str_parse_u64(const char *text, uint64_t *out)
{
    uint64_t value = 0;

    if (!is_digit(*text))
        return -EINVAL;
    for (; is_digit(*text); text++) {
        if (__builtin_mul_overflow(value, 10, &value) ||
                __builtin_add_overflow(value, (uint64_t)(*text - '0'), &value))
            return -ERANGE;
    }
    if (*text)
        return -EINVAL;
    *out = value;
    return 0;
}

/*
 * A decimal with an optional fraction, as thousandths. No floating point, so nothing is rounded
 * silently. Leaves *rest at the first character that does not belong to it.
 */
static int parse_milli(const char *text, const char **rest, uint64_t *milli)
{
    uint64_t whole = 0;
    uint64_t fraction = 0;
    unsigned scale = 1000;

    if (!is_digit(*text))
        return -EINVAL;
    for (; is_digit(*text); text++) {
        if (__builtin_mul_overflow(whole, 10, &whole) ||
                __builtin_add_overflow(whole, (uint64_t)(*text - '0'), &whole))
            return -ERANGE;
    }
    if (*text == '.') {
        if (!is_digit(*++text))
            return -EINVAL;
        for (; is_digit(*text); text++) {
            if (scale == 1)
                return -EINVAL; /* finer than a thousandth: refuse instead of rounding */
            scale /= 10;
            fraction += (uint64_t)(*text - '0') * scale;
        }
    }
    if (__builtin_mul_overflow(whole, 1000, &whole) ||
            __builtin_add_overflow(whole, fraction, milli))
        return -ERANGE;
    *rest = text;
    return 0;
}

struct unit {
    char name[8];
    uint64_t factor;
};

static const struct unit *find_unit(const struct unit *units, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcasecmp(units[i].name, name) == 0)
            return &units[i];
    return NULL;
}

int str_parse_size(const char *text, uint64_t *bytes, struct carrel_error *err)
{
    static const struct unit units[] = {
        { "", 1 },
        { "b", 1 },
        { "k", 1ULL << 10 },
        { "kb", 1ULL << 10 },
        { "kib", 1ULL << 10 },
        { "m", 1ULL << 20 },
        { "mb", 1ULL << 20 },
        { "mib", 1ULL << 20 },
        { "g", 1ULL << 30 },
        { "gb", 1ULL << 30 },
        { "gib", 1ULL << 30 },
        { "t", 1ULL << 40 },
        { "tb", 1ULL << 40 },
        { "tib", 1ULL << 40 },
    };
    char shown[64];
    const char *rest;
    uint64_t milli;
    uint64_t scaled;

    int r = parse_milli(text, &rest, &milli);
    const struct unit *unit = r < 0 ? NULL : find_unit(units, ARRAY_LEN(units), rest);
    if (r != -ERANGE && !unit)
        return err_set(err, -EINVAL,
                "'%s' is not a size; expected a number with an optional unit K, M, G or T, "
                "such as 512M",
                str_escape(text, strlen(text), shown, sizeof(shown)));
    if (r == -ERANGE || __builtin_mul_overflow(milli, unit->factor, &scaled) ||
            scaled / 1000 > INT64_MAX)
        return err_set(err, -ERANGE, "'%s' is larger than any size",
                str_escape(text, strlen(text), shown, sizeof(shown)));
    if (scaled % 1000)
        return err_set(err, -EINVAL, "'%s' is not a whole number of bytes",
                str_escape(text, strlen(text), shown, sizeof(shown)));
    *bytes = scaled / 1000;
    return 0;
}

int str_parse_duration(const char *text, uint64_t *ms, struct carrel_error *err)
{
    static const struct unit units[] = {
        { "", 1000 },
        { "s", 1000 },
        { "ms", 1 },
        { "m", 60 * 1000 },
        { "min", 60 * 1000 },
        { "h", 3600 * 1000 },
        { "d", 24 * 3600 * 1000 },
    };
    char shown[64];
    const char *rest;
    uint64_t milli;
    uint64_t scaled;

    int r = parse_milli(text, &rest, &milli);
    const struct unit *unit = r < 0 ? NULL : find_unit(units, ARRAY_LEN(units), rest);
    if (r != -ERANGE && !unit)
        return err_set(err, -EINVAL,
                "'%s' is not a time; expected a number with an optional unit ms, s, m, h "
                "or d, such as 300s",
                str_escape(text, strlen(text), shown, sizeof(shown)));
    if (r == -ERANGE || __builtin_mul_overflow(milli, unit->factor, &scaled) ||
            scaled / 1000 > INT64_MAX / 1000000)
        return err_set(err, -ERANGE, "'%s' is longer than any time",
                str_escape(text, strlen(text), shown, sizeof(shown)));
    if (scaled % 1000)
        return err_set(err, -EINVAL, "'%s' is finer than a millisecond",
                str_escape(text, strlen(text), shown, sizeof(shown)));
    *ms = scaled / 1000;
    return 0;
}

int str_parse_milli(const char *text, uint64_t *milli, struct carrel_error *err)
{
    char shown[64];
    const char *rest;
    uint64_t value;

    int r = parse_milli(text, &rest, &value);
    if (r < 0 || *rest)
        return err_set(err, r == -ERANGE ? -ERANGE : -EINVAL,
                "'%s' is not a number; expected one such as 1.0 or 0.5",
                str_escape(text, strlen(text), shown, sizeof(shown)));
    *milli = value;
    return 0;
}

bool str_is_env_name(const char *name, size_t len)
{
    if (len == 0 || is_digit(name[0]))
        return false;
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)name[i];
        if (!(c < 128 && (isalnum(c) || c == '_')))
            return false;
    }
    return true;
}

const char *str_size(uint64_t bytes, char text[static 32])
{
    static const char units[] = "KMGT";
    int unit = -1;

    while (unit < 3 && bytes >= 1024 && bytes % 1024 == 0) {
        bytes /= 1024;
        unit++;
    }
    if (unit < 0)
        (void)snprintf(text, 32, "%" PRIu64, bytes);
    else
        (void)snprintf(text, 32, "%" PRIu64 "%c", bytes, units[unit]);
    return text;
}

const char *str_milli(uint64_t milli, char text[static 32])
{
    int len = snprintf(text, 32, "%" PRIu64 ".%03" PRIu64, milli / 1000, milli % 1000);

    while (text[len - 1] == '0')
        text[--len] = '\0';
    if (text[len - 1] == '.')
        text[len - 1] = '\0';
    return text;
}

const char *str_duration(uint64_t ms, char text[static 32])
{
    char seconds[32];

    if (ms < 1000)
        (void)snprintf(text, 32, "%" PRIu64 "ms", ms);
    else
        (void)snprintf(text, 32, "%.30ss", str_milli(ms, seconds));
    return text;
}

const char *str_escape(const void *data, size_t len, char *out, size_t size)
{
    const unsigned char *in = data;
    size_t at = 0;

    while (len > 0) {
        size_t n = utf8_valid(in, len);
        bool is_plain =
                n > 0 && *in != '\\' && !utf8_is_control(in, n) && !utf8_is_hidden(in, n);
        size_t take = n ? n : 1;
        size_t need = is_plain ? take : 4 * take;
        if (at + need + 1 > size)
            break;
        for (size_t i = 0; i < take; i++) {
            if (is_plain)
                out[at++] = (char)in[i];
            else
                at += (size_t)snprintf(out + at, size - at, "\\x%02x", in[i]);
        }
        in += take;
        len -= take;
    }
    out[at] = '\0';
    return out;
}
