/* buf.h - growing text with a fixed maximum. */
#pragma once
#include "base/auto.h"
#include <stdbool.h>
#include <stddef.h>

struct buf {
    char *data; /* NUL-terminated once anything was added */
    size_t len;
    size_t room;
    size_t max;
    bool is_short; /* something did not fit, or memory ran out; later additions are dropped */
};

#define BUF_INIT(limit)                                                                        \
    (struct buf)                                                                               \
    {                                                                                          \
        .max = (limit)                                                                         \
    }

void buf_finish(struct buf buf);
DEFINE_AUTO(struct buf, buf_finish)

/* Additions never fail one by one: check is_short once, at the end. */
void buf_add(struct buf *buf, const void *data, size_t len);
void buf_add_str(struct buf *buf, const char *text);
void buf_addf(struct buf *buf, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void buf_clear(struct buf *buf);
