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

struct carrel_error;

/* Gives the text to a caller of the library, who frees it with carrel_free(). */
int buf_take(struct buf *buf, char **out, struct carrel_error *err);

/* --- a list of paths as git gives it: NUL-terminated, one after the other --- */

struct names {
    struct buf text; /* the caller fills it */
    const char **list;
    size_t n;
};
#define NAMES_MAX_BYTES (256U << 20)
#define NAMES_INIT                                                                             \
    {                                                                                          \
        .text = BUF_INIT(NAMES_MAX_BYTES)                                                      \
    }
void names_finish(struct names names);
DEFINE_AUTO(struct names, names_finish)

/* Makes the list of what is in the text. */
int names_split(struct names *names, struct carrel_error *err);
