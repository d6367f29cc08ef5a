/* report_args.c - options and output of reports. */
#include "cli/args/report_args.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/str.h"
#include "cli/print/report.h"
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
