/* err.h - sets and extends error messages. */
#pragma once
#include <carrel/error.h>

/* Public functions take a NULL error; what they call does not. */
#define ERR_OR_IGNORED(err) ((err) ? (err) : &(struct carrel_error){ 0 })

/*
 * err_set() starts a message where the failure was seen and returns `code` (a negative errno).
 * err_set_errno() does the same and adds ": <text of code>".
 * err_wrap() puts "context: " before what is already there and returns `code`.
 * err_from() says where the cause of what is there lies and returns `code`. Without it the
 * cause of err_set(-EINVAL) is the caller, and that of everything else is carrel. All of them
 * accept err == NULL, allocate nothing and are safe between clone and exec.
 */
int err_set(struct carrel_error *err, int code, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
int err_set_errno(struct carrel_error *err, int code, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
int err_wrap(struct carrel_error *err, int code, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
int err_from(struct carrel_error *err, int code, enum carrel_origin origin);

/* Takes over what another process said, which may be any bytes. Returns its code. */
int err_take(struct carrel_error *err, const struct carrel_error *told);

/*
 * For a step that looks for what the caller named: a missing or existing name is the caller's
 * failure; any other code is left as it is. Returns `code`.
 */
int err_from_name(struct carrel_error *err, int code);
