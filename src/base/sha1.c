/* sha1.c - FIPS 180-4, sections 5 and 6.1. */
#include "base/sha1.h"
#include <string.h>

static uint32_t load(const unsigned char *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static void store(unsigned char *at, uint32_t word)
{
    at[0] = (unsigned char)(word >> 24);
    at[1] = (unsigned char)(word >> 16);
    at[2] = (unsigned char)(word >> 8);
    at[3] = (unsigned char)word;
}

static uint32_t rotate(uint32_t word, unsigned by)
{
    return word << by | word >> (32 - by);
}

static uint32_t mix(unsigned round, uint32_t b, uint32_t c, uint32_t d)
{
    switch (round / 20) {
    case 0:
        return ((b & c) | (~b & d)) + 0x5a827999;
    case 1:
        return (b ^ c ^ d) + 0x6ed9eba1;
    case 2:
        return ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc;
    default:
        return (b ^ c ^ d) + 0xca62c1d6;
    }
}

static void compress(uint32_t *state, const unsigned char *block)
{
    uint32_t w[80];
    uint32_t a = state[0];
    uint32_t b = state[1];
    uint32_t c = state[2];
    uint32_t d = state[3];
    uint32_t e = state[4];

    for (unsigned i = 0; i < 16; i++)
        w[i] = load(block + 4 * (size_t)i);
    for (unsigned i = 16; i < 80; i++)
        w[i] = rotate(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    for (unsigned i = 0; i < 80; i++) {
        uint32_t next = rotate(a, 5) + mix(i, b, c, d) + e + w[i];
        e = d;
        d = c;
        c = rotate(b, 30);
        b = a;
        a = next;
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
    state[4] += e;
}

void sha1_init(struct sha1 *sha)
{
    *sha = (struct sha1){
        .state = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0 },
    };
}

void sha1_add(struct sha1 *sha, const void *data, size_t len)
{
    const unsigned char *at = data;
    size_t held = sha->len % sizeof(sha->block);

    sha->len += len;
    if (held + len < sizeof(sha->block)) {
        if (len > 0)
            memcpy(sha->block + held, at, len);
        return;
    }
    if (held > 0) {
        size_t part = sizeof(sha->block) - held;
        memcpy(sha->block + held, at, part);
        compress(sha->state, sha->block);
        at += part;
        len -= part;
    }
    for (; len >= sizeof(sha->block); len -= sizeof(sha->block), at += sizeof(sha->block))
        compress(sha->state, at);
    if (len > 0)
        memcpy(sha->block, at, len);
}

void sha1_finish(struct sha1 *sha, unsigned char digest[static SHA1_BYTES])
{
    static const unsigned char padding[64] = { 0x80 };
    unsigned char bits[8];
    size_t held = sha->len % sizeof(sha->block);

    store(bits, (uint32_t)(sha->len >> 29));
    store(bits + 4, (uint32_t)(sha->len << 3));
    sha1_add(sha, padding, held < 56 ? 56 - held : 120 - held);
    sha1_add(sha, bits, sizeof(bits));
    for (size_t i = 0; i < SHA1_BYTES / 4; i++)
        store(digest + 4 * i, sha->state[i]);
}
