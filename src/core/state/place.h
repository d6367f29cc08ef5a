/* place.h - a file or directory of the host that is compared with others: see writable.h. */
#pragma once
#include "base/auto.h"
#include "base/named.h"
#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

struct place {
    struct named_id id;
    uid_t owner;
    int dir; /* it, or of a file the directory above it; -1: none */
    char path[PATH_MAX];
};
#define PLACE_INIT                                                                             \
    {                                                                                          \
        .dir = -1                                                                              \
    }
void place_finish(struct place place);
DEFINE_AUTO(struct place, place_finish)

/* Opens what is at `path`, through links, or what `fd` is if it is not -1. Negative errno. */
int place_open(const char *path, int fd, struct place *out);

/* Whether `place` is that one or lies below it. */
bool place_is_in(const struct place *place, const char *path, const struct named_id *id);
