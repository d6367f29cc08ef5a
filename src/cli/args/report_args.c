/* report_args.c - options and output of reports. */
#include "cli/args/report_args.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/str.h"
#include "cli/commands.h"
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

static struct report_args *args_of(void *target)
{
    return target;
}

int report_take_runtime(void *target, const char *value, struct carrel_error *err)
{
    (void)err;
    args_of(target)->runtime = value; /* the registry knows the names, and says so */
    return 0;
}

int report_args_parse(const struct option_row *rows, size_t n, const char *help, int argc,
        char **argv, struct report_args *args)
{
    struct carrel_error err = { 0 };
    char shown[64];

    *args = (struct report_args){ 0 };
    int at = options_parse(rows, n, argc, argv, args, &err);
    if (at >= 0 && args->wants_help) {
        (void)puts(help);
        (void)puts("\nOptions:");
        options_print(rows, n);
        return 1;
    }
    if (at >= 0 && at < argc)
        at = err_set(&err, -EINVAL, "%s takes no arguments, only options: '%s'", argv[0],
                str_escape(argv[at], strlen(argv[at]), shown, sizeof(shown)));
    if (at < 0)
        (void)report_error(STATUS_FAILED, &err);
    return at < 0 ? at : 0;
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
        json_end_object(&json);
        (void)report_print_json(&text, 0); /* the first failure is the one to report */
    }
    return report_error(STATUS_FAILED, err);
}

int report_finish(int status)
{
    struct carrel_error err = { 0 };

    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    (void)err_set_errno(&err, -errno, "write the report");
    return report_error(STATUS_FAILED, &err);
}
