/* sha1.h - SHA-1, only to check git's own checksums. It does not authenticate anything. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#define SHA1_BYTES 20

struct sha1 {
    uint32_t state[5];
    uint64_t len; /* bytes so far */
    unsigned char block[64];
};

void sha1_init(struct sha1 *sha);
void sha1_add(struct sha1 *sha, const void *data, size_t len);
void sha1_finish(struct sha1 *sha, unsigned char digest[static SHA1_BYTES]);
