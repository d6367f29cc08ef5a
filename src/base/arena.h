/* arena.h - many small things that die together. */
#pragma once
#include "base/auto.h"
#include <stddef.h>

struct arena_chunk;

struct arena {
    struct arena_chunk *chunk; /* the latest; it holds the others */
    char *at;                  /* free space in it */
    size_t left;
};

/* Zeroed and aligned for everything; NULL when memory is gone. */
void *arena_alloc(struct arena *arena, size_t size);

/* `len` bytes and a NUL. */
char *arena_copy(struct arena *arena, const void *bytes, size_t len);

void arena_finish(struct arena arena); /* takes all of it down */
DEFINE_AUTO(struct arena, arena_finish)
