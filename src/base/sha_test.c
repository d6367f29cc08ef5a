#include "base/auto.h"
#include "base/sha1.h"
#include "base/sha256.h"
#include "harness.h"
#include <stdio.h>
#include <string.h>

static const char *hex(const unsigned char *digest, size_t size)
{
    static char text[2 * SHA256_BYTES + 1];

    for (size_t i = 0; i < size; i++)
        (void)snprintf(text + 2 * i, 3, "%02x", digest[i]);
    return text;
}

/* Each is fed the text in pieces of `step` bytes. */
static const char *sha1_of(const char *text, size_t len, size_t step)
{
    unsigned char digest[SHA1_BYTES];
    struct sha1 sha;

    sha1_init(&sha);
    for (size_t at = 0; at < len; at += step)
        sha1_add(&sha, text + at, len - at < step ? len - at : step);
    sha1_finish(&sha, digest);
    return hex(digest, sizeof(digest));
}

static const char *sha256_of(const char *text, size_t len, size_t step)
{
    unsigned char digest[SHA256_BYTES];
    struct sha256 sha;

    sha256_init(&sha);
    for (size_t at = 0; at < len; at += step)
        sha256_add(&sha, text + at, len - at < step ? len - at : step);
    sha256_finish(&sha, digest);
    return hex(digest, sizeof(digest));
}

static const struct hash {
    const char *(*of)(const char *text, size_t len, size_t step);
    const char *of_nothing, *of_abc, *of_two_blocks, *of_a_million, *of_lengths;
} hashes[] = {
    { sha1_of, "da39a3ee5e6b4b0d3255bfef95601890afd80709",
            "a9993e364706816aba3e25717850c26c9cd0d89d",
            "84983e441c3bd26ebaae4aa1f95129e5e54670f1",
            "34aa973cd4c4daa4f61eeb2bdbad27316534016f",
            "3bbe88bdb89312954ced71b5ab31e144c9122748" },
    { sha256_of, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0",
            "199af942eba7fa5d1e16d475169eb24018b14e69339c93d26a9ea6d873b4ace6" },
};

TEST(the_vectors_of_the_standard_come_out)
{
    static const char two_blocks[] = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";

    for (size_t i = 0; i < ARRAY_LEN(hashes); i++) {
        CHECK_STR(hashes[i].of("", 0, 1), hashes[i].of_nothing);
        CHECK_STR(hashes[i].of("abc", 3, 3), hashes[i].of_abc);
        CHECK_STR(hashes[i].of(two_blocks, 56, 56), hashes[i].of_two_blocks);
    }
}

TEST(a_million_bytes_come_out_right_however_they_are_cut)
{
    static char million[1000000];
    static const size_t steps[] = { 1, 7, 63, 64, 65, 4096, 1000000 };

    memset(million, 'a', sizeof(million));
    for (size_t i = 0; i < ARRAY_LEN(hashes); i++)
        for (size_t j = 0; j < ARRAY_LEN(steps); j++)
            CHECK_STR(hashes[i].of(million, sizeof(million), steps[j]), hashes[i].of_a_million);
}

/* Lengths around the end of a block, where the padding changes its shape: all digests together
 * are hashed once more, and that value was computed with another implementation. */
TEST(every_length_around_the_block_size_is_padded_rightly)
{
    char text[130];
    char all[sizeof(text) * 2 * SHA256_BYTES + 1];

    memset(text, 'x', sizeof(text));
    for (size_t i = 0; i < ARRAY_LEN(hashes); i++) {
        size_t at = 0;
        for (size_t len = 0; len < sizeof(text); len++) {
            (void)snprintf(all + at, sizeof(all) - at, "%s", hashes[i].of(text, len, 13));
            at += strlen(all + at);
        }
        CHECK_STR(hashes[i].of(all, at, at), hashes[i].of_lengths);
    }
}

TEST(a_digest_of_sha256_comes_as_hex_too)
{
    char text[2 * SHA256_BYTES + 1];
    struct sha256 sha;

    sha256_init(&sha);
    sha256_add(&sha, "abc", 3);
    sha256_finish_hex(&sha, text);
    CHECK_STR(text, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}
