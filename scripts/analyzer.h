/*
 * analyzer.h - tells the static analyzer, which sees one file at a time, that err_set() and the
 * like return the code they are given, and that it is negative, also where it is -errno.
 * Otherwise every failure looks as if it might be a success. scripts/lint includes it ahead of each file, except the one that defines these
 * functions.
 */
#pragma once
#include "base/err.h"

#define returns_code(fn, err, code, ...)                                                       \
    __extension__({                                                                            \
        int code_ = (code);                                                                    \
        (void)(fn)(err, code_, __VA_ARGS__);                                                   \
        if (code_ >= 0)                                                                        \
            __builtin_unreachable();                                                           \
        code_;                                                                                 \
    })
#define err_set(err, code, ...) returns_code(err_set, err, code, __VA_ARGS__)
#define err_set_errno(err, code, ...) returns_code(err_set_errno, err, code, __VA_ARGS__)
#define err_wrap(err, code, ...) returns_code(err_wrap, err, code, __VA_ARGS__)
