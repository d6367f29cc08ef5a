#include "base/err.h"
#include "cli/args/file_ref.h"
#include "harness.h"
#include <errno.h>
#include <string.h>

static struct carrel_error err;
static struct file_place place;

TEST(what_is_before_the_colon_names_a_sandbox)
{
    CHECK_EQ(file_place_parse("S-1:/etc/x:y", &place, &err), 0);
    CHECK_STR(place.id, "S-1");
    CHECK_STR(place.path, "/etc/x:y");
    CHECK_EQ(file_place_parse("box:", &place, &err), 0);
    CHECK_STR(place.id, "box");
    CHECK_STR(place.path, ".");
}

TEST(a_path_of_the_host_has_no_colon_or_a_slash_before_it)
{
    static const char *const words[] = { "file", "./a:b", "/a:b", ":x", "-", "a/b:c" };

    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
        CHECK_EQ(file_place_parse(words[i], &place, &err), 0);
        CHECK_STR(place.id, "");
        CHECK_STR(place.path, words[i]);
        CHECK_EQ(file_place_inside(words[i], &place, &err), -EINVAL);
    }
}

TEST(what_can_name_nothing_is_refused)
{
    char word[100];

    memset(word, 'x', sizeof(word));
    word[65] = ':';
    word[66] = '\0';
    CHECK_EQ(file_place_parse(word, &place, &err), -EINVAL);
    CHECK_EQ(file_place_parse(word + 1, &place, &err), 0);
    CHECK_EQ(file_place_parse("", &place, &err), -EINVAL);
}
