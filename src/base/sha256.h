/* sha256.h - SHA-256 of libsodium. None of it needs sodium_init(). */
#pragma once
#include "base/sha.h"
#include <stddef.h>

#define SHA256_BYTES 32

struct sha256 {
    struct sha base;
};

void sha256_init(struct sha256 *sha);
void sha256_add(struct sha256 *sha, const void *data, size_t len);
void sha256_finish(struct sha256 *sha, unsigned char digest[static SHA256_BYTES]);

/* The digest as 64 hex digits and a NUL. */
void sha256_finish_hex(struct sha256 *sha, char hex[static 2 * SHA256_BYTES + 1]);
