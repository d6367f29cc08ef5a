#include "base/auto.h"
#include "base/subids.h"
#include "harness.h"
#include <errno.h>

TEST(a_range_is_found_by_name_or_number)
{
    static const char text[] = "other:100000:65536\nme:165536:65536\n1234:300000:65536\n";
    uint32_t first = 0;

    CHECK_EQ(subids_parse(text, "me", 1, &first), 0);
    CHECK_EQ(first, 165536U);
    CHECK_EQ(subids_parse(text, "nobody", 1234, &first), 0);
    CHECK_EQ(first, 300000U);
    CHECK_EQ(subids_parse(text, NULL, 1234, &first), 0);
    CHECK_EQ(subids_parse("me:165536:65536", "me", 1, &first), 0); /* no newline */
}

TEST(who_has_no_range_gets_none)
{
    static const char text[] = "other:100000:65536\nmee:1:65536\nm:1:65536\n12345:1:65536\n";
    uint32_t first = 7;

    CHECK_EQ(subids_parse(text, "me", 1234, &first), -ENOENT);
    CHECK_EQ(subids_parse(text, NULL, 1234, &first), -ENOENT);
    CHECK_EQ(subids_parse("", "me", 1234, &first), -ENOENT);
    CHECK_EQ(first, 7U);
}

TEST(the_first_range_that_is_large_enough_is_taken)
{
    uint32_t first = 7;

    CHECK_EQ(subids_parse("me:100000:1000\nme:200000:70000\n", "me", 1, &first), 0);
    CHECK_EQ(first, 200000U);
    first = 7;
    CHECK_EQ(subids_parse("me:100000:65535\n", "me", 1, &first), -ERANGE);
    CHECK_EQ(first, 7U);
}

/* Only root can write these files; a mistake in them must not map root. */
TEST(lines_that_make_no_sense_give_nothing)
{
    static const char *const lines[] = { "me", "me:", "me:100000", "me:100000:", "me:x:65536",
        "me:100000:65536x", "me: 100000:65536", "me:-1:65536", "me:100000:65536:1", ":1:65536",
        "me:0x100000:65536", "me:99999999999999999999:65536" };
    uint32_t first;

    for (size_t i = 0; i < ARRAY_LEN(lines); i++)
        CHECK_EQ(subids_parse(lines[i], "me", 1, &first), -ENOENT);
    CHECK_EQ(subids_parse("me:0:65536", "me", 1, &first), -ERANGE);
    CHECK_EQ(subids_parse("me:4294967295:65536", "me", 1, &first), -ERANGE);
    CHECK_EQ(subids_parse("me:4294901760:65536", "me", 1, &first), -ERANGE);
}

static void check_lines(uint32_t shown, size_t n, const struct subids_line *wanted)
{
    struct subids_line lines[SUBIDS_LINES];

    CHECK_EQ(subids_lines(shown, 1000, 100000, lines), n);
    for (size_t i = 0; i < n; i++) {
        CHECK_EQ(lines[i].inside, wanted[i].inside);
        CHECK_EQ(lines[i].outside, wanted[i].outside);
        CHECK_EQ(lines[i].count, wanted[i].count);
    }
}

TEST(the_own_id_has_its_place_among_the_others)
{
    check_lines(1000, 3,
            (const struct subids_line[]){
                    { 0, 100000, 1000 }, { 1000, 1000, 1 }, { 1001, 101000, 64535 } });
    check_lines(0, 2, (const struct subids_line[]){ { 0, 1000, 1 }, { 1, 100000, 65535 } });
    check_lines(
            65535, 2, (const struct subids_line[]){ { 0, 100000, 65535 }, { 65535, 1000, 1 } });
    check_lines(
            65536, 2, (const struct subids_line[]){ { 0, 100000, 65536 }, { 65536, 1000, 1 } });
    check_lines(200000, 2,
            (const struct subids_line[]){ { 0, 100000, 65536 }, { 200000, 1000, 1 } });
}

TEST(an_id_outside_is_found_inside)
{
    struct subids_line lines[SUBIDS_LINES];
    size_t n = subids_lines(1000, 1000, 100000, lines);

    CHECK_EQ(subids_shown(lines, n, 1000), 1000U);
    CHECK_EQ(subids_shown(lines, n, 100000), 0U);
    CHECK_EQ(subids_shown(lines, n, 100999), 999U);
    CHECK_EQ(subids_shown(lines, n, 101000), 1001U);
    CHECK_EQ(subids_shown(lines, n, 165534), 65535U);
    CHECK_EQ(subids_shown(lines, n, 165535), UINT32_MAX);
    CHECK_EQ(subids_shown(lines, n, 0), UINT32_MAX);
}
