/* sha.h - what SHA-1 and SHA-256 share: the text in blocks of 64 bytes, and the end of it. */
#pragma once
#include <stddef.h>
#include <stdint.h>

struct sha {
    void (*compress)(uint32_t *state, const unsigned char *block);
    uint32_t state[8]; /* SHA-1 has five */
    uint64_t len;      /* bytes so far */
    unsigned char block[64];
};

void sha_add(struct sha *sha, const void *data, size_t len);

/* Pads, and writes the first `size` bytes of the state: a multiple of four. */
void sha_finish(struct sha *sha, unsigned char *digest, size_t size);

/* A word of a block. */
static inline uint32_t sha_load(const unsigned char *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}
