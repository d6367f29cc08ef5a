/* sha256.h - SHA-256 of libsodium. None of it needs sodium_init(). */
#pragma once
#include <sodium/crypto_hash_sha256.h>
#include <sodium/utils.h>
#include <stddef.h>

#define SHA256_BYTES crypto_hash_sha256_BYTES
#define SHA256_HEX (2 * SHA256_BYTES + 1) /* the digits and a NUL */

struct sha256 {
    crypto_hash_sha256_state state;
};

static inline void sha256_init(struct sha256 *sha)
{
    (void)crypto_hash_sha256_init(&sha->state);
}

static inline void sha256_add(struct sha256 *sha, const void *data, size_t len)
{
    (void)crypto_hash_sha256_update(&sha->state, data, len);
}

static inline void sha256_finish_hex(struct sha256 *sha, char hex[static SHA256_HEX])
{
    unsigned char digest[SHA256_BYTES];

    (void)crypto_hash_sha256_final(&sha->state, digest);
    (void)sodium_bin2hex(hex, SHA256_HEX, digest, sizeof(digest));
}

static inline void sha256_hex(const void *data, size_t len, char hex[static SHA256_HEX])
{
    struct sha256 sha;

    sha256_init(&sha);
    sha256_add(&sha, data, len);
    sha256_finish_hex(&sha, hex);
}
