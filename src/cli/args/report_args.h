/* report_args.h - the options of commands that look around and report: health, test, cleanup.
 */
#pragma once
#include "cli/args/options.h"
#include <stdbool.h>

struct report_args {
    bool is_json;
    bool wants_help;
    const char *runtime; /* NULL: the default one */
};

/* Rows of a command's table. */
int report_take_runtime(void *target, const char *value, struct carrel_error *err);

#define REPORT_JSON                                                                            \
    OPTION_FLAG("json", "print one JSON object and nothing else", struct report_args, is_json)
#define REPORT_HELP OPTION_FLAG("help", "print this text", struct report_args, wants_help)

/*
 * Reads the command line of a command that takes options only. Returns 0 to go on; 1: --help
 * was answered with `help` and the table; negative: refused, and said so.
 */
int report_args_parse(const struct option_row *rows, size_t n, const char *help, int argc,
        char **argv, struct report_args *args);
