/* arena.h - allocates many small objects that are freed together. */
#pragma once
#include "base/auto.h"
#include <stddef.h>

struct arena_chunk;

struct arena {
    struct arena_chunk *chunk; /* the latest; links to the others */
    char *at;                  /* free space in it */
    size_t left;
};

/* Zeroed, with maximum alignment; NULL: out of memory. */
void *arena_alloc(struct arena *arena, size_t size);

/* `len` bytes and a NUL. */
char *arena_copy(struct arena *arena, const void *bytes, size_t len);

/* Room for `n` pointers, NULL each, and for the NULL that ends the list. */
void *arena_list(struct arena *arena, size_t n);

void arena_finish(struct arena arena); /* frees all of it */
DEFINE_AUTO(struct arena, arena_finish)
