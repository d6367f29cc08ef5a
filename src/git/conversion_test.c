#include "git/conversion.h"
#include "harness.h"
#include <string.h>

static struct conversion conversion_of(const char *text)
{
    struct conversion found = { 0 };

    conversion_of_attributes(text, strlen(text), &found);
    return found;
}

TEST(a_filter_is_noticed_wherever_it_stands)
{
    CHECK(conversion_of("*.psd filter=lfs diff=lfs merge=lfs -text\n").has_filters);
    CHECK(conversion_of("# nothing\n\n*.c diff=c\n*.h\tident").has_filters);
    CHECK(conversion_of("[attr]big filter=big\r\n").has_filters);
    CHECK(conversion_of("\"with blank\" filter=x\n").has_filters);
    CHECK(conversion_of("*.txt working-tree-encoding=UTF-16\n").has_filters);
    CHECK(!conversion_of("*.psd filter=lfs -text\n").has_line_ends);
}

TEST(line_ends_are_noticed)
{
    CHECK(conversion_of("* text=auto\n").has_line_ends);
    CHECK(conversion_of("*.sh eol=lf").has_line_ends);
    CHECK(conversion_of("*.c crlf=input\n").has_line_ends);
    CHECK(!conversion_of("* text=auto\n").has_filters);
}

TEST(what_takes_attributes_away_converts_nothing)
{
    const struct conversion found =
            conversion_of("*.png -text -filter !eol binary diff=x\n"
                          "# *.c filter=lfs\n"
                          "  # text\n"
                          "*.md linguist-documentation textual=1 filters=2\n");

    CHECK(!found.has_filters);
    CHECK(!found.has_line_ends);
}

TEST(any_bytes_may_come)
{
    static const char bytes[] = "\0\n\"\n\xff text\0 filter\n \t\r\n*";
    struct conversion found = { 0 };

    conversion_of_attributes(bytes, sizeof(bytes), &found);
    CHECK(!conversion_of("").has_filters);
}
