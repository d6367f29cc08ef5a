#include "base/sha1.h"
#include "harness.h"
#include <stdio.h>
#include <string.h>

static const char *hex(const unsigned char *digest)
{
    static char text[2 * SHA1_BYTES + 1];

    for (size_t i = 0; i < SHA1_BYTES; i++)
        (void)snprintf(text + 2 * i, 3, "%02x", digest[i]);
    return text;
}

/* Fed in pieces of `step` bytes. */
static const char *digest_of(const char *text, size_t len, size_t step)
{
    unsigned char digest[SHA1_BYTES];
    struct sha1 sha;

    sha1_init(&sha);
    for (size_t at = 0; at < len; at += step)
        sha1_add(&sha, text + at, len - at < step ? len - at : step);
    sha1_finish(&sha, digest);
    return hex(digest);
}

TEST(the_vectors_of_the_standard_come_out)
{
    static const char two_blocks[] = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";

    CHECK_STR(digest_of("", 0, 1), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
    CHECK_STR(digest_of("abc", 3, 3), "a9993e364706816aba3e25717850c26c9cd0d89d");
    CHECK_STR(digest_of(two_blocks, 56, 56), "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
}

TEST(a_million_bytes_come_out_right_however_they_are_cut)
{
    static char million[1000000];
    static const size_t steps[] = { 1, 7, 63, 64, 65, 4096, 1000000 };

    memset(million, 'a', sizeof(million));
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
        CHECK_STR(digest_of(million, sizeof(million), steps[i]),
                "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
}

/* Lengths around the end of a block, where the padding changes its shape: each digest is fed
 * into one more hash, whose value was computed with another implementation. */
TEST(every_length_around_the_block_size_is_padded_rightly)
{
    char text[130];
    struct sha1 all;
    unsigned char digest[SHA1_BYTES];

    memset(text, 'x', sizeof(text));
    sha1_init(&all);
    for (size_t len = 0; len < sizeof(text); len++) {
        const char *one = digest_of(text, len, 13);
        sha1_add(&all, one, strlen(one));
    }
    sha1_finish(&all, digest);
    CHECK_STR(hex(digest), "3bbe88bdb89312954ced71b5ab31e144c9122748");
}
