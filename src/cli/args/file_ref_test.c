#include "base/err.h"
#include "cli/args/file_ref.h"
#include "harness.h"
#include <errno.h>
#include <string.h>

static struct carrel_error err;
static struct file_ref ref;

TEST(what_is_before_the_colon_names_a_sandbox)
{
    CHECK_EQ(file_ref_parse("S-1:/etc/x:y", &ref, &err), 0);
    CHECK_STR(ref.id, "S-1");
    CHECK_STR(ref.path, "/etc/x:y");
    CHECK_EQ(file_ref_parse("box:", &ref, &err), 0);
    CHECK_STR(ref.id, "box");
    CHECK_STR(ref.path, ".");
}

TEST(a_path_of_the_host_has_no_colon_or_a_slash_before_it)
{
    static const char *const words[] = { "file", "./a:b", "/a:b", ":x", "-", "a/b:c" };

    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
        CHECK_EQ(file_ref_parse(words[i], &ref, &err), 0);
        CHECK_STR(ref.id, "");
        CHECK_STR(ref.path, words[i]);
        CHECK_EQ(file_ref_inside(words[i], &ref, &err), -EINVAL);
    }
}

TEST(what_can_name_nothing_is_refused)
{
    char word[100];

    memset(word, 'x', sizeof(word));
    word[65] = ':';
    word[66] = '\0';
    CHECK_EQ(file_ref_parse(word, &ref, &err), -EINVAL);
    CHECK_EQ(file_ref_parse(word + 1, &ref, &err), 0);
    CHECK_EQ(file_ref_parse("", &ref, &err), -EINVAL);
}
