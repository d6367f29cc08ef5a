/*
 * line.c - the format of a line. An attacker may have chosen every byte that is checked here.
 */
#include "journal/line.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/sha256.h"
#include "base/utf8.h"
#include "journal/key.h"
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#define DIGITS (JOURNAL_HASH - 1)

const char journal_no_hash[JOURNAL_HASH] =
        "0000000000000000000000000000000000000000000000000000000000000000";

static const char before_prev[] = ",\"prev\":\"";
static const char before_hash[] = "\",\"hash\":\"";
static const char at_end[] = "\"}";
#define LENGTH(text) (sizeof(text) - 1)
#define END_LENGTH                                                                             \
    (LENGTH(before_prev) + DIGITS + LENGTH(before_hash) + DIGITS + LENGTH(at_end))

bool journal_is_run(const char *text, size_t len)
{
    if (len == 0 || len >= JOURNAL_RUN || *text == '.')
        return false;
    for (size_t i = 0; i < len; i++) {
        char c = text[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                    c == '.' || c == '_' || c == '-' || c == '+'))
            return false;
    }
    return true;
}

void journal_line_begin(
        struct buf *out, struct json *json, uint64_t seq, const char *run, const char *event)
{
    char now[CLOCK_STAMP];

    clock_stamp_now(now);
    buf_clear(out);
    buf_addf(out, "{\"seq\":%" PRIu64 ",\"time\":\"%s\",\"run\":\"%s\",\"event\":\"%s\"", seq,
            now, run, event);
    *json = (struct json){ .out = out, .needs_comma = true };
}

void journal_line_end(struct buf *out, const char *prev, char hash[static JOURNAL_HASH])
{
    buf_add_str(out, before_prev);
    buf_add_str(out, prev);
    buf_add(out, before_hash, 1); /* the hash covers its quote */
    if (out->is_short)
        return;
    sha256_hex(out->data, out->len, hash);
    buf_add_str(out, before_hash + 1);
    buf_add_str(out, hash);
    buf_add_str(out, at_end);
    buf_add_str(out, "\n");
}

/* A position in a line, which moves forward over expected text. */
struct cursor {
    const char *at;
    const char *end;
};

static bool pass(struct cursor *cursor, const char *text)
{
    size_t n = strlen(text);

    if ((size_t)(cursor->end - cursor->at) < n || memcmp(cursor->at, text, n) != 0)
        return false;
    cursor->at += n;
    return true;
}

/* A number without leading zeroes. */
static bool pass_number(struct cursor *cursor, uint64_t *out)
{
    const char *begin = cursor->at;
    uint64_t value = 0;

    for (; cursor->at < cursor->end && *cursor->at >= '0' && *cursor->at <= '9'; cursor->at++)
        if (__builtin_mul_overflow(value, 10, &value) ||
                __builtin_add_overflow(value, (uint64_t)(*cursor->at - '0'), &value))
            return false;
    *out = value;
    return cursor->at > begin && *begin != '0';
}

/* Up to and including the next quote. */
static bool pass_text(struct cursor *cursor, struct json_value *out)
{
    const char *quote = memchr(cursor->at, '"', (size_t)(cursor->end - cursor->at));

    if (!quote)
        return false;
    *out = (struct json_value){ cursor->at, (size_t)(quote - cursor->at) };
    cursor->at = quote + 1;
    return true;
}

static bool is_time(struct json_value text)
{
    static const char form[] = "dddd-dd-ddTdd:dd:dd.ddddddZ";

    if (text.len != LENGTH(form))
        return false;
    for (size_t i = 0; i < text.len; i++) {
        bool is_digit = text.text[i] >= '0' && text.text[i] <= '9';
        if (form[i] == 'd' ? !is_digit : text.text[i] != form[i])
            return false;
    }
    return true;
}

static bool is_event(struct json_value text)
{
    for (size_t i = 0; i < text.len; i++)
        if (!((text.text[i] >= 'a' && text.text[i] <= 'z') || text.text[i] == '_'))
            return false;
    return text.len > 0;
}

static bool is_hex(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (!((text[i] >= '0' && text[i] <= '9') || (text[i] >= 'a' && text[i] <= 'f')))
            return false;
    return true;
}

static bool parse_begin(struct cursor *cursor, struct journal_line *out)
{
    return pass(cursor, "{\"seq\":") && pass_number(cursor, &out->seq) &&
           pass(cursor, ",\"time\":\"") && pass_text(cursor, &out->time) &&
           is_time(out->time) && pass(cursor, ",\"run\":\"") && pass_text(cursor, &out->run) &&
           journal_is_run(out->run.text, out->run.len) && pass(cursor, ",\"event\":\"") &&
           pass_text(cursor, &out->event) && is_event(out->event);
}

static bool parse_end(const char *line, size_t len, struct journal_line *out)
{
    if (len < END_LENGTH)
        return false;
    struct cursor cursor = { line + len - END_LENGTH, line + len };
    out->before_prev = len - END_LENGTH;
    if (!pass(&cursor, before_prev))
        return false;
    out->prev = cursor.at;
    cursor.at += DIGITS;
    out->covered = (size_t)(cursor.at - line) + 1;
    if (!pass(&cursor, before_hash))
        return false;
    out->hash = cursor.at;
    cursor.at += DIGITS;
    return is_hex(out->prev, DIGITS) && is_hex(out->hash, DIGITS) && pass(&cursor, at_end);
}

/* The writer escapes everything that controls a terminal, so a line can be shown unchanged. */
static bool is_harmless(const unsigned char *at, size_t len)
{
    while (len > 0) {
        size_t n = *at < 0x80 ? 1 : utf8_valid(at, len);
        if (n == 0 || utf8_is_control(at, n))
            return false;
        at += n;
        len -= n;
    }
    return true;
}

int journal_line_parse(
        const char *line, size_t len, struct journal_line *out, struct carrel_error *err)
{
    struct cursor cursor = { line, line + len };
    struct journal_line found = { 0 };
    struct carrel_error why = { 0 };

    if (!parse_end(line, len, &found))
        return err_set(err, -EBADMSG, "its end does not have the form of a record");
    if (!parse_begin(&cursor, &found) || cursor.at > line + found.before_prev)
        return err_set(err, -EBADMSG, "its beginning does not have the form of a record");
    if (!is_harmless((const unsigned char *)line, len))
        return err_set(err, -EBADMSG, "it has control characters or is not UTF-8");
    if (json_read_check(line, len, &found.whole, &why) < 0)
        return err_set(err, -EBADMSG, "it is not JSON: %s", why.message);
    *out = found;
    return 0;
}

bool journal_line_is(const struct journal_line *line, const char *event)
{
    return line->event.len == strlen(event) &&
           memcmp(line->event.text, event, line->event.len) == 0;
}

/*
 * A seal covers the lines before it. Its members end in one of two ways, which are compared
 * byte for byte: ,"records":N,"head":"…" with or without ,"key":"…","signature":"…"
 */
static int check_seal(const struct journal_chain *chain, const struct journal_trust *trust,
        const struct journal_line *line, char signer[static JOURNAL_KEY],
        struct carrel_error *err)
{
    const char *text = line->whole.text;
    size_t len = line->before_prev;
    char figures[128];

    size_t of_signature = journal_signature_length(text, len);
    size_t n = (size_t)snprintf(figures, sizeof(figures),
            ",\"records\":%" PRIu64 ",\"head\":\"%s\"", chain->seq + 1, chain->head);
    len -= of_signature;
    if (len < n || memcmp(text + len - n, figures, n) != 0)
        return err_set(err, -EBADMSG, "it seals other records than these");
    return journal_signature_check(trust, text, len, of_signature, signer, err);
}

int journal_line_check(struct journal_chain *chain, const struct journal_trust *trust,
        const char *text, size_t len, struct journal_line *out, struct carrel_error *err)
{
    struct journal_chain next = *chain;
    struct journal_line line;
    char hash[JOURNAL_HASH];

    if (chain->seq == 0)
        memcpy(next.head, journal_no_hash, JOURNAL_HASH);
    int r = journal_line_parse(text, len, &line, err);
    if (r < 0)
        return r;
    sha256_hex(text, line.covered, hash);
    if (memcmp(hash, line.hash, DIGITS) != 0)
        return err_set(err, -EBADMSG, "its hash is not that of its text: it was changed");
    if (!next.has_many_runs && next.run[0] &&
            (line.run.len != strlen(next.run) ||
                    memcmp(line.run.text, next.run, line.run.len) != 0))
        return err_set(err, -EBADMSG, "it is of another run: '%.*s'", (int)line.run.len,
                line.run.text);
    if (line.seq != next.seq + 1)
        return err_set(err, -EBADMSG,
                "it is number %" PRIu64 ": records are missing, repeated or out of order",
                line.seq);
    if (memcmp(line.prev, next.head, DIGITS) != 0)
        return err_set(err, -EBADMSG, "it does not follow the record before it");
    next.is_sealed = journal_line_is(&line, "sealed");
    if (next.is_sealed) {
        r = check_seal(&next, trust, &line, next.signer, err);
        if (r < 0)
            return r;
        memcpy(next.seal, hash, JOURNAL_HASH);
    }
    (void)snprintf(next.run, sizeof(next.run), "%.*s", (int)line.run.len, line.run.text);
    (void)snprintf(next.time, sizeof(next.time), "%.*s", (int)line.time.len, line.time.text);
    memcpy(next.head, hash, JOURNAL_HASH);
    next.seq++;
    *chain = next;
    *out = line;
    return 0;
}
