/* arena.c - a list of chunks; a large allocation gets a chunk of its own. */
#include "base/arena.h"
#include <stdalign.h>
#include <stdint.h>

#define CHUNK 8192

struct arena_chunk {
    struct arena_chunk *before;
    alignas(max_align_t) char bytes[];
};

void *arena_alloc(struct arena *arena, size_t size)
{
    const size_t align = alignof(max_align_t);

    if (size > SIZE_MAX / 2)
        return NULL;
    size = size == 0 ? align : (size + align - 1) & ~(align - 1);
    if (size > arena->left) {
        size_t room = size > CHUNK / 2 ? size : CHUNK;
        struct arena_chunk *chunk = malloc(sizeof(*chunk) + room);
        if (!chunk)
            return NULL;
        chunk->before = arena->chunk;
        arena->chunk = chunk;
        arena->at = chunk->bytes;
        arena->left = room;
    }
    void *taken = arena->at;
    arena->at += size;
    arena->left -= size;
    return memset(taken, 0, size);
}

char *arena_copy(struct arena *arena, const void *bytes, size_t len)
{
    char *copy = arena_alloc(arena, len + 1);

    return copy && len > 0 ? memcpy(copy, bytes, len) : copy;
}

void *arena_list(struct arena *arena, size_t n)
{
    return arena_alloc(arena, (n + 1) * sizeof(void *));
}

void arena_finish(struct arena arena)
{
    while (arena.chunk) {
        struct arena_chunk *before = arena.chunk->before;
        free(arena.chunk);
        arena.chunk = before;
    }
}
