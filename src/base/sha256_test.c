#include "base/sha256.h"
#include "harness.h"
#include <stdio.h>
#include <string.h>

static const char *hex(const unsigned char *digest)
{
    static char text[2 * SHA256_BYTES + 1];

    for (size_t i = 0; i < SHA256_BYTES; i++)
        (void)snprintf(text + 2 * i, 3, "%02x", digest[i]);
    return text;
}

/* Fed in pieces of `step` bytes. */
static const char *digest_of(const char *text, size_t len, size_t step)
{
    unsigned char digest[SHA256_BYTES];
    struct sha256 sha;

    sha256_init(&sha);
    for (size_t at = 0; at < len; at += step)
        sha256_add(&sha, text + at, len - at < step ? len - at : step);
    sha256_finish(&sha, digest);
    return hex(digest);
}

TEST(the_vectors_of_the_standard_come_out)
{
    static const char two_blocks[] = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";

    CHECK_STR(digest_of("", 0, 1),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    CHECK_STR(digest_of("abc", 3, 3),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    CHECK_STR(digest_of(two_blocks, 56, 56),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

TEST(a_million_bytes_come_out_right_however_they_are_cut)
{
    static char million[1000000];
    static const size_t steps[] = { 1, 7, 63, 64, 65, 4096, 1000000 };

    memset(million, 'a', sizeof(million));
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
        CHECK_STR(digest_of(million, sizeof(million), steps[i]),
                "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

/* Lengths around the end of a block, where the padding changes its shape: each digest is fed
 * into one more hash, whose value was computed with another implementation. */
TEST(every_length_around_the_block_size_is_padded_rightly)
{
    char text[130];
    struct sha256 all;
    unsigned char digest[SHA256_BYTES];

    memset(text, 'x', sizeof(text));
    sha256_init(&all);
    for (size_t len = 0; len < sizeof(text); len++) {
        const char *one = digest_of(text, len, 13);
        sha256_add(&all, one, strlen(one));
    }
    sha256_finish(&all, digest);
    CHECK_STR(hex(digest), "199af942eba7fa5d1e16d475169eb24018b14e69339c93d26a9ea6d873b4ace6");
}

TEST(the_digest_comes_as_hex_too)
{
    char text[2 * SHA256_BYTES + 1];
    struct sha256 sha;

    sha256_init(&sha);
    sha256_add(&sha, "abc", 3);
    sha256_finish_hex(&sha, text);
    CHECK_STR(text, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}
