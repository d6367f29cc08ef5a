/*
 * analyzer.h - what the static analyzer cannot see from one file: err_set() and its kin return
 * the code they are given. Without it every failure looks as if it might go on as a success.
 * scripts/lint includes it ahead of each file, except the one that defines these functions.
 */
#pragma once
#include "base/err.h"

#define returns_code(fn, err, code, ...)                                                       \
    __extension__({                                                                            \
        int code_ = (code);                                                                    \
        (void)(fn)(err, code_, __VA_ARGS__);                                                   \
        code_;                                                                                 \
    })
#define err_set(err, code, ...) returns_code(err_set, err, code, __VA_ARGS__)
#define err_set_errno(err, code, ...) returns_code(err_set_errno, err, code, __VA_ARGS__)
#define err_wrap(err, code, ...) returns_code(err_wrap, err, code, __VA_ARGS__)
