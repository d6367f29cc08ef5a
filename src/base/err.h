/* err.h - sets and extends error messages. */
#pragma once
#include <carrel/error.h>

/*
 * err_set() starts a message where the failure was seen and returns `code` (a negative errno).
 * err_set_errno() does the same and adds ": <text of code>".
 * err_wrap() puts "context: " before what is already there and returns `code`.
 * All of them accept err == NULL, allocate nothing and are safe between clone and exec.
 */
int err_set(struct carrel_error *err, int code, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
int err_set_errno(struct carrel_error *err, int code, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
int err_wrap(struct carrel_error *err, int code, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
