#include "base/err.h"
#include "base/id.h"
#include "harness.h"
#include <string.h>

TEST(an_id_is_known_by_its_form)
{
    struct carrel_error err = { 0 };
    char id[ID_SIZE];

    CHECK_EQ(id_new('X', id, &err), 0);
    CHECK(id_is_made_up('X', id));
    CHECK(!id_is_made_up('Y', id));
    CHECK(!id_is_made_up('X', "X-"));
    CHECK(!id_is_made_up('X', ""));
    CHECK(!id_is_made_up('X', "X-0123456789abcde"));
    CHECK(!id_is_made_up('X', "X-0123456789abcdefg"));
    CHECK(!id_is_made_up('X', "X-0123456789abcdeu")); /* no 'u': it looks like a 'v' */
    CHECK(!id_is_made_up('X', "X-../../../../../.."));
}

TEST(no_two_ids_are_the_same)
{
    struct carrel_error err = { 0 };
    char first[ID_SIZE];
    char second[ID_SIZE];

    CHECK_EQ(id_new('X', first, &err), 0);
    CHECK_EQ(id_new('X', second, &err), 0);
    CHECK(strcmp(first, second) != 0);
}
