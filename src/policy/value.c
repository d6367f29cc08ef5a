/* value.c - parses values; pure. */
#include "policy/value.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/str.h"
#include "base/suggest.h"
#include <errno.h>
#include <stdio.h>
#include <strings.h>

static const char *safe(const char *text, char shown[static 64])
{
    return str_escape(text, strlen(text), shown, 64);
}

static int unexpected(const char *text, const char *expected, struct carrel_error *err)
{
    char shown[64];

    return err_set(err, -EINVAL, "'%s' is not %s", safe(text, shown), expected);
}

bool value_parse_bool(const char *text, bool *out)
{
    static const struct {
        char word[8];
        bool value;
    } words[] = {
        { "true", true },
        { "false", false },
        { "yes", true },
        { "no", false },
        { "on", true },
        { "off", false },
    };

    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (strcasecmp(words[i].word, text) != 0)
            continue;
        *out = words[i].value;
        return true;
    }
    return false;
}

static int parse_bool(const char *text, struct policy_value *out, struct carrel_error *err)
{
    bool value;

    if (!value_parse_bool(text, &value))
        return unexpected(text, "true or false", err);
    out->number = value;
    out->text = value ? "true" : "false";
    return 0;
}

/* Policies also accept days. */
static int parse_duration(const char *text, uint64_t *ms, struct carrel_error *err)
{
    const uint64_t day_ms = 24ULL * 3600 * 1000;
    size_t len = strlen(text);
    char number[32];
    uint64_t days;

    if (len < 2 || len > sizeof(number) || text[len - 1] != 'd')
        return str_parse_duration(text, ms, err);
    memcpy(number, text, len - 1);
    number[len - 1] = '\0';
    if (str_parse_u64(number, &days) < 0 || days > 36500)
        return unexpected(text, "a number of days, such as 30d", err);
    *ms = days * day_ms;
    return 0;
}

static int parse_percent(const char *text, uint64_t *out, struct carrel_error *err)
{
    size_t len = strlen(text);
    char number[8];

    if (len > 0 && text[len - 1] == '%')
        len--;
    if (len >= sizeof(number))
        return unexpected(text, "a number from 1 to 100", err);
    memcpy(number, text, len);
    number[len] = '\0';
    if (str_parse_u64(number, out) < 0 || *out < 1 || *out > 100)
        return unexpected(text, "a number from 1 to 100", err);
    return 0;
}

/* In billionths, because a second of a core costs some hundred-thousandths of a dollar. */
static int parse_price(const char *text, uint64_t *out, struct carrel_error *err)
{
    const uint64_t billion = 1000000000;
    const uint64_t most = 1000000000; /* whole units: more is a mistake, not a price */
    size_t whole_len = strspn(text, "0123456789");
    uint64_t whole = 0;
    uint64_t unit = billion;

    for (size_t i = 0; i < whole_len; i++) {
        whole = whole * 10 + (uint64_t)(text[i] - '0');
        if (whole > most)
            return unexpected(text, "a price: it is too large", err);
    }
    *out = whole * billion;
    const char *at = text + whole_len;
    if (whole_len > 0 && *at == '.' && at[1]) {
        for (at++; *at >= '0' && *at <= '9' && unit > 1; at++) {
            unit /= 10;
            *out += (uint64_t)(*at - '0') * unit;
        }
    }
    if (whole_len == 0 || *at)
        return unexpected(text,
                "a price; expected a number such as 0.000024, of nine places at most", err);
    return 0;
}

static int parse_count(const char *text, uint64_t *out, struct carrel_error *err)
{
    return str_parse_u64(text, out) < 0 ? unexpected(text, "a number such as 256", err) : 0;
}

static int parse_choice(const struct key_row *row, const char *text, struct policy_value *out,
        struct carrel_error *err)
{
    char expected[128];
    char shown[64];
    bool flag;
    size_t i = 0;

    while (row->choices[i] && strcmp(row->choices[i], text) != 0)
        i++;
    if (!row->choices[i] && row->takes_bool && value_parse_bool(text, &flag))
        i = flag;
    if (!row->choices[i])
        return err_set(err, -EINVAL, "'%s' is not %s", safe(text, shown),
                key_expected(key_find(row->name), expected, sizeof(expected)));
    out->number = i;
    out->text = row->choices[i];
    return 0;
}

static int unknown_word(
        const struct key_words *words, const char *word, struct carrel_error *err)
{
    char shown[64];
    char list[256] = "";
    size_t at = 0;
    const char *best = NULL;
    size_t distance = SIZE_MAX;

    for (size_t i = 0; words->known[i]; i++) {
        suggest_offer(words->known[i], word, strlen(word), &best, &distance);
        if (at < sizeof(list))
            at += (size_t)snprintf(
                    list + at, sizeof(list) - at, "%s%s", i > 0 ? " " : "", words->known[i]);
    }
    if (best)
        return err_set(err, -EINVAL, "'%s' is not %s (did you mean '%s'?)", safe(word, shown),
                words->expected, best);
    return err_set(err, -EINVAL, "'%s' is not %s; expected one of: %s", safe(word, shown),
            words->expected, list);
}

int value_check_word(const struct key_words *words, const char *word, struct carrel_error *err)
{
    if (words->known)
        return value_list_has(words->known, word) ? 0 : unknown_word(words, word, err);
    return words->is_valid(word) ? 0 : unexpected(word, words->expected, err);
}

static int parse_amount(const struct key_row *row, const char *text, struct policy_value *out,
        struct carrel_error *err)
{
    switch (row->kind) {
    case KEY_SIZE:
        return str_parse_size(text, &out->number, err);
    case KEY_DURATION:
        return parse_duration(text, &out->number, err);
    case KEY_MILLI:
        return str_parse_milli(text, &out->number, err);
    case KEY_COUNT:
        return parse_count(text, &out->number, err);
    case KEY_PERCENT:
        return parse_percent(text, &out->number, err);
    case KEY_PRICE:
        return parse_price(text, &out->number, err);
    case KEY_BOOL:
    case KEY_CHOICE:
    case KEY_TEXT:
    case KEY_LIST:
    case KEY_MAP:
        break;
    }
    return unexpected(text, "a list", err);
}

int value_parse(enum policy_key key, const char *text, struct policy_value *out,
        struct carrel_error *err)
{
    const struct key_row *row = key_row(key);
    struct policy_value value = { .is_set = true, .text = text };
    char limit[32];
    int r;

    if (row->kind == KEY_BOOL)
        r = parse_bool(text, &value, err);
    else if (row->kind == KEY_CHOICE)
        r = parse_choice(row, text, &value, err);
    else if (row->kind == KEY_TEXT)
        r = value_check_word(row->words, text, err);
    else
        r = parse_amount(row, text, &value, err);
    if (r < 0)
        return r;
    const bool is_limit = row->kind != KEY_BOOL && row->kind != KEY_CHOICE &&
                          row->kind != KEY_TEXT && row->kind != KEY_PRICE;
    if (is_limit && value.number == 0 && !row->takes_zero)
        return err_set(err, -EINVAL, "must be more than 0");
    if (row->max > 0 && value.number > row->max)
        return err_set(err, -EINVAL, "may not be more than %s", str_size(row->max, limit));
    *out = value;
    return 0;
}

size_t value_list_len(const char *const *list)
{
    size_t n = 0;

    while (list && list[n])
        n++;
    return n;
}

bool value_list_has(const char *const *list, const char *item)
{
    for (size_t i = 0; list && list[i]; i++)
        if (strcmp(list[i], item) == 0)
            return true;
    return false;
}
