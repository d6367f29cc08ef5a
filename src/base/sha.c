/* sha.c - FIPS 180-4, section 5. */
#include "base/sha.h"
#include <string.h>

static void store(unsigned char *at, uint32_t word)
{
    at[0] = (unsigned char)(word >> 24);
    at[1] = (unsigned char)(word >> 16);
    at[2] = (unsigned char)(word >> 8);
    at[3] = (unsigned char)word;
}

void sha_add(struct sha *sha, const void *data, size_t len)
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
        sha->compress(sha->state, sha->block);
        at += part;
        len -= part;
    }
    for (; len >= sizeof(sha->block); len -= sizeof(sha->block), at += sizeof(sha->block))
        sha->compress(sha->state, at);
    if (len > 0)
        memcpy(sha->block, at, len);
}

void sha_finish(struct sha *sha, unsigned char *digest, size_t size)
{
    static const unsigned char padding[64] = { 0x80 };
    unsigned char bits[8];
    size_t held = sha->len % sizeof(sha->block);

    store(bits, (uint32_t)(sha->len >> 29));
    store(bits + 4, (uint32_t)(sha->len << 3));
    sha_add(sha, padding, held < 56 ? 56 - held : 120 - held);
    sha_add(sha, bits, sizeof(bits));
    for (size_t i = 0; i < size / 4; i++)
        store(digest + 4 * i, sha->state[i]);
}
