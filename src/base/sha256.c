/* sha256.c - FIPS 180-4, section 6.2. */
#include "base/sha256.h"
#include <string.h>

/* The first 32 bits of the fractional parts of the cube roots of the first 64 primes. */
static const uint32_t constants[64] = {
    0x428a2f98,
    0x71374491,
    0xb5c0fbcf,
    0xe9b5dba5,
    0x3956c25b,
    0x59f111f1,
    0x923f82a4,
    0xab1c5ed5,
    0xd807aa98,
    0x12835b01,
    0x243185be,
    0x550c7dc3,
    0x72be5d74,
    0x80deb1fe,
    0x9bdc06a7,
    0xc19bf174,
    0xe49b69c1,
    0xefbe4786,
    0x0fc19dc6,
    0x240ca1cc,
    0x2de92c6f,
    0x4a7484aa,
    0x5cb0a9dc,
    0x76f988da,
    0x983e5152,
    0xa831c66d,
    0xb00327c8,
    0xbf597fc7,
    0xc6e00bf3,
    0xd5a79147,
    0x06ca6351,
    0x14292967,
    0x27b70a85,
    0x2e1b2138,
    0x4d2c6dfc,
    0x53380d13,
    0x650a7354,
    0x766a0abb,
    0x81c2c92e,
    0x92722c85,
    0xa2bfe8a1,
    0xa81a664b,
    0xc24b8b70,
    0xc76c51a3,
    0xd192e819,
    0xd6990624,
    0xf40e3585,
    0x106aa070,
    0x19a4c116,
    0x1e376c08,
    0x2748774c,
    0x34b0bcb5,
    0x391c0cb3,
    0x4ed8aa4a,
    0x5b9cca4f,
    0x682e6ff3,
    0x748f82ee,
    0x78a5636f,
    0x84c87814,
    0x8cc70208,
    0x90befffa,
    0xa4506ceb,
    0xbef9a3f7,
    0xc67178f2,
};

static uint32_t rotate(uint32_t word, unsigned by)
{
    return word >> by | word << (32 - by);
}

static void expand(uint32_t w[static 64], const unsigned char *block)
{
    for (size_t i = 0; i < 16; i++)
        w[i] = sha_load(block + 4 * i);
    for (size_t i = 16; i < 64; i++) {
        uint32_t s0 = rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ w[i - 15] >> 3;
        uint32_t s1 = rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ w[i - 2] >> 10;
        w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
}

/* One of 64 rounds: the words change places by their names, so that none has to be moved. */
#define ROUND(a, b, c, d, e, f, g, h, i)                                                       \
    do {                                                                                       \
        uint32_t t1_ = (h) + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) +                  \
                       (((e) & (f)) ^ (~(e) & (g))) + constants[i] + w[i];                     \
        (d) += t1_;                                                                            \
        (h) = t1_ + (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) +                           \
              (((a) & (b)) ^ ((a) & (c)) ^ ((b) & (c)));                                       \
    } while (0)

static void compress(uint32_t *state, const unsigned char *block)
{
    uint32_t w[64];
    uint32_t v[8];

    expand(w, block);
    memcpy(v, state, sizeof(v));
    for (size_t i = 0; i < 64; i += 8) {
        ROUND(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], i);
        ROUND(v[7], v[0], v[1], v[2], v[3], v[4], v[5], v[6], i + 1);
        ROUND(v[6], v[7], v[0], v[1], v[2], v[3], v[4], v[5], i + 2);
        ROUND(v[5], v[6], v[7], v[0], v[1], v[2], v[3], v[4], i + 3);
        ROUND(v[4], v[5], v[6], v[7], v[0], v[1], v[2], v[3], i + 4);
        ROUND(v[3], v[4], v[5], v[6], v[7], v[0], v[1], v[2], i + 5);
        ROUND(v[2], v[3], v[4], v[5], v[6], v[7], v[0], v[1], i + 6);
        ROUND(v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[0], i + 7);
    }
    for (size_t i = 0; i < 8; i++)
        state[i] += v[i];
}

void sha256_init(struct sha256 *sha)
{
    /* The square roots of the first 8 primes, in the same way. */
    *sha = (struct sha256){
        .base.compress = compress,
        .base.state = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c,
                0x1f83d9ab, 0x5be0cd19 },
    };
}

void sha256_add(struct sha256 *sha, const void *data, size_t len)
{
    sha_add(&sha->base, data, len);
}

void sha256_finish(struct sha256 *sha, unsigned char digest[static SHA256_BYTES])
{
    sha_finish(&sha->base, digest, SHA256_BYTES);
}

void sha256_finish_hex(struct sha256 *sha, char hex[static 2 * SHA256_BYTES + 1])
{
    static const char digits[] = "0123456789abcdef";
    unsigned char digest[SHA256_BYTES];

    sha256_finish(sha, digest);
    for (size_t i = 0; i < sizeof(digest); i++) {
        hex[2 * i] = digits[digest[i] >> 4];
        hex[2 * i + 1] = digits[digest[i] & 15];
    }
    hex[2 * sizeof(digest)] = '\0';
}
