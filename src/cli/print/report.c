/* report.c - errors, finished reports, and the exit statuses that go with them. */
#include "cli/print/report.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/str.h"
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

/* Text from outside was escaped when the message was written: its backslashes are kept. */
int report_error(int status, const struct carrel_error *err)
{
    char shown[4 * sizeof(err->message)]; /* enough for all of it */
    const char *text = err->message;
    size_t at = 0;

    shown[0] = '\0';
    while (*text) {
        size_t len = strcspn(text, "\\");
        at += strlen(str_escape(text, len, shown + at, sizeof(shown) - at));
        text += len;
        if (*text)
            shown[at++] = *text++;
        shown[at] = '\0';
    }
    (void)fprintf(stderr, "carrel: %s\n", shown);
    return status;
}

static int print(const struct buf *text, const char *end, int status)
{
    struct carrel_error err = { 0 };

    int r = text->is_short ? -ENOMEM : fd_write_all(STDOUT_FILENO, text->data, text->len);
    if (r == 0)
        r = fd_write_all(STDOUT_FILENO, end, strlen(end));
    if (r < 0) {
        (void)err_set_errno(&err, r, "write the report");
        return report_error(STATUS_FAILED, &err);
    }
    return status;
}

int report_print_json(const struct buf *json, int status)
{
    return print(json, "\n", status);
}

int report_print_line(const char *json, int status)
{
    const struct buf whole = { .data = (char *)(uintptr_t)json, .len = strlen(json) };

    return print(&whole, "\n", status);
}

int report_print_text(const struct buf *text, int status)
{
    return print(text, "", status);
}

int report_fail(bool is_json, const struct carrel_error *err)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(64U << 10);
    struct json json = { .out = &text };

    if (is_json) {
        json_object(&json, NULL);
        json_bool(&json, "ok", false);
        json_str(&json, "error", err->message);
        json_str(&json, "reason", err->reason);
        json_str(&json, "origin", carrel_origin_name(err->origin));
        json_end_object(&json);
        (void)report_print_json(&text, 0); /* the first failure is the one to report */
    }
    return report_error(STATUS_FAILED, err);
}

int report_done(bool is_json, const char *text, const char *const *members)
{
    AUTO(buf_finish) struct buf out = BUF_INIT(1U << 20);
    struct json json = { .out = &out };

    if (!is_json) {
        (void)puts(text);
        return report_finish(0);
    }
    json_object(&json, NULL);
    json_bool(&json, "ok", true);
    for (; *members; members += 2)
        json_str(&json, members[0], members[1]);
    json_end_object(&json);
    return report_print_json(&out, 0);
}

int report_finish(int status)
{
    struct carrel_error err = { 0 };

    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    (void)err_set_errno(&err, -errno, "write the report");
    return report_error(STATUS_FAILED, &err);
}
