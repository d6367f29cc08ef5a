/* err.c - error messages in fixed space, so that they work when memory is exhausted. */
#include "base/err.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void put(struct carrel_error *err, int code, const char *text)
{
    size_t len = strnlen(text, sizeof(err->message) - 1); /* truncated at its end */

    err->code = code;
    memmove(err->message, text, len);
    err->message[len] = '\0';
}

int err_set(struct carrel_error *err, int code, const char *fmt, ...)
{
    char text[sizeof(((struct carrel_error *)0)->message)];
    va_list ap;

    if (!err)
        return code;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    put(err, code, text);
    return code;
}

int err_set_errno(struct carrel_error *err, int code, const char *fmt, ...)
{
    char text[sizeof(((struct carrel_error *)0)->message)];
    char whole[sizeof(text) + 128];
    const char *why = strerrordesc_np(-code);
    va_list ap;

    if (!err)
        return code;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    (void)snprintf(whole, sizeof(whole), "%s: %s", text, why ? why : "unknown error");
    put(err, code, whole);
    return code;
}

int err_wrap(struct carrel_error *err, int code, const char *fmt, ...)
{
    char context[sizeof(((struct carrel_error *)0)->message)];
    char whole[2 * sizeof(context) + 2];
    va_list ap;

    if (!err)
        return code;
    va_start(ap, fmt);
    (void)vsnprintf(context, sizeof(context), fmt, ap);
    va_end(ap);
    (void)snprintf(whole, sizeof(whole), "%s: %s", context, err->message);
    put(err, code, whole);
    return code;
}
