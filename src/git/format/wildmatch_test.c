#include "git/format/wildmatch.h"
#include "harness.h"
#include <string.h>

static bool match(const char *pattern, const char *text, enum wildmatch_scope scope)
{
    const struct wildmatch_text p = { pattern, strlen(pattern) };
    const struct wildmatch_text t = { text, strlen(text) };
    uint64_t steps = 1000000;

    bool is_match = wildmatch(p, t, scope, &steps);
    CHECK(steps > 0);
    return is_match;
}

#define PATH(pattern, text) match(pattern, text, WILDMATCH_PATH)
#define NAME(pattern, text) match(pattern, text, WILDMATCH_NAME)

TEST(plain_bytes_stand_for_themselves)
{
    CHECK(PATH("", ""));
    CHECK(!PATH("", "a"));
    CHECK(!PATH("a", ""));
    CHECK(PATH("a/b", "a/b"));
    CHECK(!PATH("a/b", "a/bc"));
    CHECK(!PATH("a/bc", "a/b"));
}

TEST(a_star_stays_in_its_component)
{
    CHECK(PATH("*", "abc"));
    CHECK(!PATH("*", "a/c"));
    CHECK(NAME("*", "a/c"));
    CHECK(PATH("*/*", "a/c"));
    CHECK(!PATH("*/*", "a/b/c"));
    CHECK(PATH("a*b*c", "aXbXbXc"));
    CHECK(!PATH("a*b*c", "aXbXbX"));
    CHECK(PATH("*/b", "/b"));
    CHECK(PATH("**b", "ab"));
    CHECK(!PATH("x**b", "xa/b"));
}

TEST(two_stars_between_slashes_cross_them)
{
    CHECK(PATH("**", "a/b/c"));
    CHECK(PATH("**/c", "a/b/c"));
    CHECK(PATH("**/c", "c"));
    CHECK(!PATH("**/c", "ac"));
    CHECK(PATH("a/**/c", "a/c"));
    CHECK(PATH("a/**/c", "a/b/b/c"));
    CHECK(!PATH("a/**/c", "a/bc"));
    CHECK(PATH("a/**", "a/b/c"));
    CHECK(!PATH("a/**", "a"));
    CHECK(PATH("**/a*/**/b", "x/ab/y/az/b"));
    CHECK(PATH("**\\/c", "a/c"));
    CHECK(!PATH("**\\/c", "c"));
    CHECK(PATH("a/***/c", "a/b/b/c"));
}

TEST(one_byte_can_be_any_but_a_slash)
{
    CHECK(PATH("a?c", "abc"));
    CHECK(!PATH("a?c", "a/c"));
    CHECK(!PATH("a[!x]c", "a/c"));
    CHECK(!PATH("a[/]c", "a/c"));
    CHECK(!PATH("?", ""));
}

TEST(sets_have_members_ranges_and_classes)
{
    CHECK(PATH("[abc]", "b"));
    CHECK(!PATH("[!abc]", "b"));
    CHECK(PATH("[^abc]", "d"));
    CHECK(PATH("[a-c]", "b"));
    CHECK(!PATH("[c-a]", "b"));
    CHECK(PATH("[]]", "]"));
    CHECK(PATH("[!]]", "a"));
    CHECK(PATH("[]-a]", "^"));
    CHECK(PATH("[a-]", "-"));
    CHECK(PATH("[-a]", "-"));
    CHECK(PATH("[\\]]", "]"));
    CHECK(PATH("[a-\\c]", "b"));
    CHECK(PATH("[[:digit:]x]", "7"));
    CHECK(PATH("[[:digit:]x]", "x"));
    CHECK(PATH("[[:digit:]-z]", "-"));
    CHECK(!PATH("[[:digit:]-z]", "a"));
    CHECK(PATH("[[:x]", ":"));
    CHECK(PATH("[[:x]", "["));
    CHECK(!PATH("[[:alpha:]]", "\xe9"));
    CHECK(PATH("[\x80-\xff]", "\xe9"));
}

TEST(a_malformed_pattern_matches_nothing)
{
    CHECK(!PATH("[", "["));
    CHECK(!PATH("[]", "]"));
    CHECK(!PATH("[a-", "a"));
    CHECK(!PATH("[a\\", "a"));
    CHECK(!PATH("*[a", "a"));
    CHECK(!PATH("[[:nope:]]", "n"));
    CHECK(!PATH("[[::]]", ":"));
    CHECK(!PATH("a\\", "a"));
    CHECK(!PATH("a\\", "a\\"));
}

TEST(a_backslash_takes_the_meaning_away)
{
    CHECK(PATH("\\*", "*"));
    CHECK(!PATH("\\*", "a"));
    CHECK(PATH("\\a", "a"));
    CHECK(PATH("\\\\", "\\"));
    CHECK(PATH("*\\[x]", "a[x]"));
}

TEST(the_literal_part_ends_at_the_first_special_byte)
{
    CHECK_EQ(wildmatch_literal_len((struct wildmatch_text){ "abc", 3 }), 3);
    CHECK_EQ(wildmatch_literal_len((struct wildmatch_text){ "ab*", 3 }), 2);
    CHECK_EQ(wildmatch_literal_len((struct wildmatch_text){ "a\\*", 3 }), 1);
    CHECK_EQ(wildmatch_literal_len((struct wildmatch_text){ "[", 1 }), 0);
    CHECK_EQ(wildmatch_literal_len((struct wildmatch_text){ "", 0 }), 0);
}

TEST(steps_end_a_match)
{
    const struct wildmatch_text pattern = { "*a*a*a*b", 8 };
    const struct wildmatch_text text = { "aaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 29 };
    uint64_t steps = 20;

    CHECK(!wildmatch(pattern, text, WILDMATCH_NAME, &steps));
    CHECK_EQ(steps, 0);
}
