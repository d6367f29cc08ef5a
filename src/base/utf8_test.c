#include "base/auto.h"
#include "base/utf8.h"
#include "harness.h"
#include <stdint.h>
#include <string.h>

static size_t valid(const char *bytes)
{
    return utf8_valid((const unsigned char *)bytes, strlen(bytes));
}

TEST(every_character_is_valid_and_every_surrogate_is_not)
{
    for (uint32_t c = 0; c <= 0x10ffff; c++) {
        unsigned char bytes[4];
        size_t n = utf8_encode(c, bytes);
        CHECK_EQ(utf8_decode(bytes, n), c);
        CHECK_EQ(utf8_valid(bytes, n), c >= 0xd800 && c <= 0xdfff ? 0 : n);
    }
}

TEST(what_follows_a_character_does_not_matter)
{
    CHECK_EQ(valid("a\xff"), 1);
    CHECK_EQ(valid("\xc3\xa9\xff"), 2);
    CHECK_EQ(valid("\xe2\x82\xac\xff"), 3);
    CHECK_EQ(valid("\xf0\x9f\x98\x80\xff"), 4);
}

TEST(no_bytes_are_no_character)
{
    CHECK_EQ(utf8_valid(NULL, 0), 0);
}

TEST(a_zero_byte_is_a_character)
{
    CHECK_EQ(utf8_valid((const unsigned char *)"", 1), 1);
}

TEST(a_character_cut_short_is_refused_at_every_length)
{
    static const char *const whole[] = { "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80" };

    for (size_t i = 0; i < 3; i++)
        for (size_t len = 1; len < strlen(whole[i]); len++)
            CHECK_EQ(utf8_valid((const unsigned char *)whole[i], len), 0);
}

TEST(overlong_forms_are_refused)
{
    CHECK_EQ(valid("\xc0\x80"), 0);
    CHECK_EQ(valid("\xc0\xaf"), 0); /* a slash */
    CHECK_EQ(valid("\xc1\xbf"), 0);
    CHECK_EQ(valid("\xe0\x80\xaf"), 0);
    CHECK_EQ(valid("\xe0\x9f\xbf"), 0);
    CHECK_EQ(valid("\xf0\x80\x80\xaf"), 0);
    CHECK_EQ(valid("\xf0\x8f\xbf\xbf"), 0);
}

TEST(characters_beyond_the_last_one_are_refused)
{
    CHECK_EQ(valid("\xf4\x8f\xbf\xbf"), 4);
    CHECK_EQ(valid("\xf4\x90\x80\x80"), 0);
    CHECK_EQ(valid("\xf5\x80\x80\x80"), 0);
    CHECK_EQ(valid("\xf8\x88\x80\x80\x80"), 0);
    CHECK_EQ(valid("\xfe"), 0);
    CHECK_EQ(valid("\xff"), 0);
}

TEST(a_continuation_cannot_begin_and_must_follow)
{
    for (int c = 0x80; c <= 0xbf; c++) {
        const char alone[2] = { (char)c, 0 };
        CHECK_EQ(valid(alone), 0);
    }
    CHECK_EQ(valid("\xc3"
                   "a"),
            0);
    CHECK_EQ(valid("\xe2\x82"
                   "a"),
            0);
    CHECK_EQ(valid("\xe2"
                   "a\x82"),
            0);
    CHECK_EQ(valid("\xf0\x9f\x98"
                   "a"),
            0);
    CHECK_EQ(valid("\xf0\x9f\xc3\x98"), 0);
}

TEST(text_is_valid_to_its_last_byte)
{
    CHECK(utf8_is_text("", 0));
    CHECK(utf8_is_text("a\xc3\xa9\0z", 5));
    CHECK(!utf8_is_text("a\xc3\xa9\xc3", 4));
    CHECK(!utf8_is_text("\xff", 1));
}

struct range {
    uint32_t first, last;
};

/* Every character is what `is` says if and only if it is in one of the ranges. */
static void check_ranges(
        bool (*is)(const unsigned char *, size_t), const struct range *ranges, size_t n_ranges)
{
    for (uint32_t c = 0; c <= 0x10ffff; c++) {
        unsigned char bytes[4];
        size_t n = utf8_encode(c, bytes);
        bool expected = false;
        for (size_t i = 0; i < n_ranges; i++)
            expected |= c >= ranges[i].first && c <= ranges[i].last;
        CHECK_EQ(is(bytes, n), expected);
    }
}

TEST(controls_are_known_and_their_neighbours_are_not)
{
    static const struct range controls[] = { { 0, 0x1f }, { 0x7f, 0x9f }, { 0x2028, 0x202e },
        { 0x2066, 0x2069 } };

    check_ranges(utf8_is_control, controls, ARRAY_LEN(controls));
}

TEST(what_nobody_sees_is_known_and_its_neighbours_are_not)
{
    static const struct range hidden[] = { { 0xad, 0xad }, { 0x61c, 0x61c }, { 0x180e, 0x180e },
        { 0x200b, 0x200f }, { 0x2060, 0x2065 }, { 0x206a, 0x206f }, { 0xfeff, 0xfeff },
        { 0xfff9, 0xfffb }, { 0xe0000, 0xe0fff } };

    check_ranges(utf8_is_hidden, hidden, ARRAY_LEN(hidden));
}
