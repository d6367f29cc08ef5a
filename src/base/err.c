/* err.c - error messages in fixed space, so that they work when memory is exhausted. */
#include "base/err.h"
#include "base/auto.h"
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

const char *const *carrel_error_reasons(void)
{
    static const char *const all[] = {
        "busy",
        "cancelled",
        "damaged",
        "denied",
        "ended",
        "exists",
        "failed",
        "forbidden",
        "invalid",
        "no_memory",
        "no_program",
        "no_space",
        "not_empty",
        "not_executable",
        "not_found",
        "timed_out",
        "too_large",
        "too_many",
        "unsupported",
        NULL,
    };

    return all;
}

const char *carrel_origin_name(enum carrel_origin origin)
{
    static const char names[][8] = {
        [CARREL_FROM_CARREL] = "carrel",
        [CARREL_FROM_CALLER] = "caller",
        [CARREL_FROM_POLICY] = "policy",
        [CARREL_FROM_PROGRAM] = "program",
    };

    return origin < ARRAY_LEN(names) ? names[origin] : "carrel";
}

static const char *reason_of(int code, enum carrel_origin origin)
{
    switch (-code) {
    case EAGAIN:
    case EBUSY:
        return "busy";
    case ECANCELED:
    case EINTR:
        return "cancelled";
    case EBADMSG:
    case EILSEQ:
    case EPROTO:
        return "damaged";
    case EACCES:
    case EPERM:
    case EROFS:
        return origin == CARREL_FROM_PROGRAM  ? "not_executable"
               : origin == CARREL_FROM_POLICY ? "forbidden"
                                              : "denied";
    case ESRCH:
    case ESHUTDOWN:
        return "ended";
    case EEXIST:
        return "exists";
    case ENOTEMPTY:
        return "not_empty";
    case EINVAL:
        return "invalid";
    case ENOMEM:
        return "no_memory";
    case ENOPKG:
        return "no_program";
    case ENOSPC:
    case EDQUOT:
        return "no_space";
    case EISDIR:
    case ENOEXEC:
        return origin == CARREL_FROM_PROGRAM ? "not_executable" : "invalid";
    case ENOENT:
    case ENOTDIR:
        return "not_found";
    case ETIMEDOUT:
        return "timed_out";
    case E2BIG:
    case EFBIG:
    case EMSGSIZE:
        return "too_large";
    case EMFILE:
    case ENFILE:
        return "too_many";
    case ENOSYS:
    case ENOTSUP:
        return "unsupported";
    default:
        return "failed";
    }
}

int err_from(struct carrel_error *err, int code, enum carrel_origin origin)
{
    if (!err)
        return code;
    err->origin = origin;
    (void)snprintf(err->reason, sizeof(err->reason), "%s", reason_of(code, origin));
    return code;
}

int err_from_name(struct carrel_error *err, int code)
{
    const bool is_name = code == -ENOENT || code == -EEXIST || code == -ENOTDIR ||
                         code == -ENOTUNIQ || code == -ENOTEMPTY;

    return is_name && err && err->origin == CARREL_FROM_CARREL
                   ? err_from(err, code, CARREL_FROM_CALLER)
                   : code;
}

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
    return err_from(err, code, code == -EINVAL ? CARREL_FROM_CALLER : CARREL_FROM_CARREL);
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
    return err_from(err, code, CARREL_FROM_CARREL);
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
    return err_from(err, code, err->origin);
}

int err_take(struct carrel_error *err, const struct carrel_error *told)
{
    const int code = told->code < 0 && told->code >= -4095 ? told->code : -EIO;
    const int max = (int)sizeof(told->message) - 1;

    (void)err_set(err, code, "%.*s", max, told->message);
    return err_from(
            err, code, told->origin <= CARREL_FROM_PROGRAM ? told->origin : CARREL_FROM_CARREL);
}
