#include "base/auto.h"
#include "base/sha1.h"
#include "base/sha256.h"
#include "harness.h"
#include <stdio.h>
#include <string.h>

/* Adds the text in pieces of `step` bytes. */
static const char *sha1_of(const char *text, size_t len, size_t step)
{
    static char hex[2 * SHA1_BYTES + 1];
    unsigned char digest[SHA1_BYTES];
    struct sha1 sha;

    sha1_init(&sha);
    for (size_t at = 0; at < len; at += step)
        sha1_add(&sha, text + at, len - at < step ? len - at : step);
    sha1_finish(&sha, digest);
    for (size_t i = 0; i < SHA1_BYTES; i++)
        (void)snprintf(hex + 2 * i, 3, "%02x", digest[i]);
    return hex;
}

TEST(the_vectors_of_the_standard_come_out)
{
    static const char two_blocks[] = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";

    CHECK_STR(sha1_of("", 0, 1), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
    CHECK_STR(sha1_of("abc", 3, 3), "a9993e364706816aba3e25717850c26c9cd0d89d");
    CHECK_STR(sha1_of(two_blocks, 56, 56), "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
}

TEST(a_million_bytes_come_out_right_however_they_are_cut)
{
    static char million[1000000];
    static const size_t steps[] = { 1, 7, 63, 64, 65, 4096, 1000000 };

    memset(million, 'a', sizeof(million));
    for (size_t i = 0; i < ARRAY_LEN(steps); i++)
        CHECK_STR(sha1_of(million, sizeof(million), steps[i]),
                "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
}

/* Lengths around the end of a block, where the padding changes its shape: all digests together
 * are hashed once more, and that value was computed with another implementation. */
TEST(every_length_around_the_block_size_is_padded_rightly)
{
    char text[130];
    char all[sizeof(text) * 2 * SHA1_BYTES + 1];
    size_t at = 0;

    memset(text, 'x', sizeof(text));
    for (size_t len = 0; len < sizeof(text); len++) {
        (void)snprintf(all + at, sizeof(all) - at, "%s", sha1_of(text, len, 13));
        at += strlen(all + at);
    }
    CHECK_STR(sha1_of(all, at, at), "3bbe88bdb89312954ced71b5ab31e144c9122748");
}

TEST(sha256_comes_as_hex)
{
    char text[SHA256_HEX];

    sha256_hex("abc", 3, text);
    CHECK_STR(text, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}
