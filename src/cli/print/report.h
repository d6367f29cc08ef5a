/* report.h - how a command answers: its errors, its output, its exit status. */
#pragma once
#include "base/auto.h"
#include <carrel/public.h>
#include <stdbool.h>

struct buf;
struct carrel_error;

DEFINE_AUTO(char *, carrel_free)

/* Exit statuses of carrel itself; every other status is the program's. */
enum { STATUS_FAILED = 125, STATUS_CANNOT_EXECUTE = 126, STATUS_NOT_FOUND = 127 };

/* Prints "carrel: MESSAGE" on standard error, safe on a terminal. Returns `status`. */
int report_error(int status, const struct carrel_error *err);

/*
 * The same; with `is_json` also {"ok":false,"error":MESSAGE,"reason":WORD,"origin":WORD} on
 * standard output. Returns 125.
 */
int report_fail(bool is_json, const struct carrel_error *err);

/* Prints a finished JSON object and a newline. Returns `status`, or 125 if writing failed. */
int report_print_json(const struct buf *json, int status);

/* The same for a JSON object that the library wrote. */
int report_print_line(const char *json, int status);

/* The same for text that must be complete before its first line is printed. */
int report_print_text(const struct buf *text, int status);

/*
 * Ends a command whose answer is `text`, or with `is_json` {"ok":true} and the members, pairs
 * of name and value with NULL behind the last. Returns 0, or 125 if writing failed.
 */
int report_done(bool is_json, const char *text, const char *const *members);

/* After printing with stdio: returns `status`, or 125 if writing failed. */
int report_finish(int status);
