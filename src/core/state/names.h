/* names.h - a list of paths as git gives it: NUL-terminated, one after the other. */
#pragma once
#include "base/auto.h"
#include "base/buf.h"

struct carrel_error;

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
