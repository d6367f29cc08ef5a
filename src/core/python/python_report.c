/* python_report.c - reads what came out of a sandbox; nothing in it is trusted. */
#include "core/python/python_report.h"
#include "base/err.h"
#include "base/json.h"
#include "base/json_read.h"
#include "base/utf8.h"
#include "core/result/result.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#define TEXT_MAX (1U << 20)

/* The object that the text is; .text is NULL when it is none. */
static struct json_value object_of(const char *text, size_t len)
{
    struct json_value value = { 0 };

    if (!text || json_read_check(text, len, &value, NULL) < 0 ||
            json_read_kind(value) != JSON_OBJECT)
        return (struct json_value){ 0 };
    return value;
}

static struct json_value member(struct json_value object, const char *key)
{
    return object.text ? json_read_member(object, key) : (struct json_value){ 0 };
}

/* A string as this writer writes it; anything else is null. */
static void copy_string(struct json *json, const char *key, struct json_value value)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(TEXT_MAX);

    if (!value.text || json_read_string(value, &text) < 0 || text.is_short)
        json_null(json, key);
    else
        json_bytes(json, key, text.data ? text.data : "", text.len);
}

static void copy_number(struct json *json, const char *key, struct json_value value)
{
    uint64_t number;

    if (!value.text || json_read_u64(value, &number) < 0)
        json_null(json, key);
    else
        json_u64(json, key, number);
}

static void copy_strings(struct json *json, const char *key, struct json_value list)
{
    struct json_value one;
    size_t at = 0;

    json_array(json, key);
    if (list.text && json_read_kind(list) == JSON_ARRAY)
        while (json_read_next(list, &at, NULL, &one))
            copy_string(json, NULL, one);
    json_end_array(json);
}

/* {"type","message","traceback","line"}; nothing for anything that is no object. */
static void copy_error(struct buf *out, struct json_value error)
{
    struct json json = { .out = out };

    if (!error.text || json_read_kind(error) != JSON_OBJECT)
        return;
    json_object(&json, NULL);
    copy_string(&json, "type", member(error, "type"));
    copy_string(&json, "message", member(error, "message"));
    copy_string(&json, "traceback", member(error, "traceback"));
    copy_number(&json, "line", member(error, "line"));
    json_end_object(&json);
}

/*
 * The value as it is, on one line and safe on a terminal: outside of strings only spaces can be
 * controls, inside of them only characters that may as well be escapes.
 */
static void copy_value(struct buf *out, struct json_value value)
{
    const unsigned char *at = (const unsigned char *)value.text;
    const unsigned char *end = at + value.len;

    while (at < end) {
        size_t n = utf8_valid(at, (size_t)(end - at));
        if (n == 0)
            n = 1; /* cannot be: it was checked */
        if (!utf8_is_control(at, n))
            buf_add(out, at, n);
        else if (n > 1 || *at == 0x7f)
            buf_addf(out, "\\u%04x", (unsigned)utf8_decode(at, n));
        at += n;
    }
}

static void say_value_error(struct carrel_run_result *result, const char *why)
{
    struct json json = { .out = &result->guest.value_error };

    json_str(&json, NULL, why);
}

static void take_value(const struct python_texts *texts, struct carrel_run_result *result)
{
    struct carrel_error err = { 0 };
    struct json_value report = { 0 };
    struct json_value value;

    if (texts->report_len == 0) {
        if (result->reason == CARREL_EXITED)
            say_value_error(result,
                    "the program ended the interpreter, or closed its files, before the "
                    "result was read");
        return;
    }
    if (json_read_check(texts->report, texts->report_len, &report, &err) < 0) {
        char why[sizeof(err.message) + 64];
        (void)snprintf(why, sizeof(why), "the result cannot be read: %s", err.message);
        say_value_error(result, why);
        return;
    }
    value = json_read_member(report, "result");
    if (value.text)
        copy_value(&result->guest.value, value);
    value = json_read_member(report, "result_error");
    if (value.text && json_read_kind(value) == JSON_STRING) {
        struct json json = { .out = &result->guest.value_error };
        copy_string(&json, NULL, value);
    }
    copy_error(&result->guest.error, json_read_member(report, "error"));
}

static void write_meta(struct json_value findings, struct buf *out)
{
    struct json json = { .out = out };

    json_object(&json, NULL);
    copy_string(&json, "python", member(findings, "python"));
    copy_strings(&json, "imports", member(findings, "imports"));
    copy_strings(&json, "blocked_imports", member(findings, "blocked"));
    json_end_object(&json);
}

/* "..." with as much of the text as fits, cut between characters. */
static void set_message(struct carrel_run_result *result, const char *before, const char *text,
        size_t len, const char *after)
{
    size_t room = sizeof(result->message) - 1 - strlen(before) - strlen(after);

    if (len > room)
        for (len = room; len > 0 && ((unsigned char)text[len] & 0xc0) == 0x80;)
            len--;
    (void)snprintf(result->message, sizeof(result->message), "%s%.*s%s", before, (int)len, text,
            after);
}

static bool take_text(struct json_value value, struct buf *out)
{
    return value.text && json_read_string(value, out) == 0 && !out->is_short && out->len > 0;
}

static void set_syntax(struct json_value syntax, struct carrel_run_result *result)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(TEXT_MAX);
    uint64_t line = 0;
    uint64_t column = 0;
    char interpreter[80] = "";

    (void)take_text(member(syntax, "message"), &text);
    if (member(syntax, "line").text && json_read_u64(member(syntax, "line"), &line) < 0)
        line = 0;
    if (member(syntax, "column").text && json_read_u64(member(syntax, "column"), &column) < 0)
        column = 0;
    if (line > 0 && column > 0)
        (void)snprintf(interpreter, sizeof(interpreter), " (line %ju, column %ju)",
                (uintmax_t)line, (uintmax_t)column);
    else if (line > 0)
        (void)snprintf(interpreter, sizeof(interpreter), " (line %ju)", (uintmax_t)line);
    result->reason = CARREL_SYNTAX_ERROR;
    set_message(
            result, "Python syntax error: ", text.data ? text.data : "", text.len, interpreter);
}

static void set_blocked(struct json_value findings, struct carrel_run_result *result)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(TEXT_MAX);
    struct json_value list = member(findings, "blocked");
    struct json_value first;
    size_t at = 0;

    if (list.text && json_read_kind(list) == JSON_ARRAY &&
            json_read_next(list, &at, NULL, &first))
        (void)take_text(first, &text);
    result->reason = CARREL_BLOCKED_IMPORT;
    set_message(result, "Security policy blocked import: ", text.data ? text.data : "",
            text.len, "");
}

static bool is_continuation(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* "ValueError: what it says", of an error that we wrote down; nothing if there is none. */
static void add_error_line(const struct buf *error, struct buf *out)
{
    struct json_value object = object_of(error->data, error->len);

    if (!take_text(member(object, "type"), out))
        return;
    buf_add_str(out, ": ");
    (void)take_text(member(object, "message"), out);
}

/* The last line of standard error that is not empty; on a terminal the two streams are one. */
static void set_failure(struct carrel_run_result *result, const char *what)
{
    const struct buf *from =
            result->stderr_cut.is_cut ? &result->stderr_end : &result->stderr_text;
    const char *text = from->data;
    size_t end = from->len;
    AUTO(buf_finish) struct buf instead = BUF_INIT(TEXT_MAX);

    while (end > 0 && is_space(text[end - 1]))
        end--;
    size_t begin = end;
    while (begin > 0 && text[begin - 1] != '\n')
        begin--;
    while (begin < end && (is_space(text[begin]) || is_continuation(text[begin])))
        begin++; /* the second: of a character that is not all there */
    if (begin < end) {
        set_message(result, what, text + begin, end - begin, "");
        return;
    }
    add_error_line(&result->guest.error, &instead);
    if (instead.len == 0)
        buf_addf(&instead, "exit status %d", WEXITSTATUS(result->wait_status));
    set_message(result, what, instead.data ? instead.data : "", instead.len, "");
}

/* It is not Python, or could not even start. */
static void set_absence(struct carrel_run_result *result)
{
    result->reason = CARREL_INFRASTRUCTURE;
    set_failure(result,
            "The interpreter ended before the program began (carrel needs Python 3.6 or "
            "later): ");
}

/* The policy only warns: the note says which modules it would have blocked. */
static void note_imports(struct json_value findings, struct carrel_run_result *result)
{
    AUTO(buf_finish) struct buf names = BUF_INIT(TEXT_MAX);
    struct json_value list = member(findings, "blocked");
    struct json_value one;
    size_t at = 0;
    size_t used = strlen(result->note);

    while (list.text && json_read_next(list, &at, NULL, &one)) {
        if (names.len > 0)
            buf_add_str(&names, ", ");
        (void)json_read_string(one, &names);
    }
    if (names.len == 0 || names.is_short)
        return;
    (void)snprintf(result->note + used, sizeof(result->note) - used,
            "%sthe import rules would block: %.150s", used ? "; " : "", names.data);
}

void python_report_apply(const struct python_texts *texts, struct carrel_run_result *result)
{
    struct json_value findings = object_of(texts->findings, texts->findings_len);
    struct json_value syntax = member(findings, "syntax");
    struct json_value runs_value = member(findings, "runs");
    bool runs = false;

    if (findings.text)
        write_meta(findings, &result->guest.meta);
    if (!runs_value.text || json_read_bool(runs_value, &runs) < 0) {
        if (result->reason == CARREL_EXITED)
            set_absence(result);
        return;
    }
    if (!runs) {
        if (result->reason != CARREL_EXITED)
            return;
        copy_error(&result->guest.error, member(findings, "error"));
        if (syntax.text)
            set_syntax(syntax, result);
        else
            set_blocked(findings, result);
        return;
    }
    take_value(texts, result);
    if (texts->is_warning)
        note_imports(findings, result);
    if (result->reason == CARREL_EXITED && WEXITSTATUS(result->wait_status) != 0)
        set_failure(result, "Execution failed: ");
}
