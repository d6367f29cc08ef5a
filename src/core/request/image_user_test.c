#include "core/request/image_user.h"
#include "harness.h"
#include <stdlib.h>
#include <string.h>

static const char passwd[] = "root:x:0:0:root:/root:/bin/sh\n"
                             "# a comment\n"
                             "\n"
                             ":x:1:1::/:/\n"
                             "short\n"
                             "half:x:7\n"
                             "big:x:4294967295:1::/:/\n"
                             "long:x:00000000000000000000000001:1::/:/\n"
                             "minus:x:-1:1::/:/\n"
                             "www:x:33:34:www:/var/www:/bin/sh\n"
                             "twice:x:5:5::/:/\n"
                             "twice:x:6:6::/:/\n"
                             "last:x:70:71";

static int find(const char *name, unsigned *uid, unsigned *gid)
{
    size_t len = sizeof(passwd) - 1;
    char *copy = malloc(len); /* without a NUL: a read past the end is seen */

    CHECK(copy);
    memcpy(copy, passwd, len);
    int found = image_user_in(copy, len, name, uid, gid);
    free(copy);
    return found;
}

TEST(names_and_numbers_are_found)
{
    unsigned uid = 0;
    unsigned gid = 0;

    CHECK(find("www", &uid, &gid));
    CHECK_EQ(uid, 33);
    CHECK_EQ(gid, 34);
    CHECK(find("33", &uid, &gid));
    CHECK_EQ(gid, 34);
    CHECK(find("root", &uid, &gid));
    CHECK_EQ(uid, 0);
    CHECK(find("last", &uid, &gid));
    CHECK_EQ(uid, 70);
    CHECK_EQ(gid, 71);
    CHECK(find("twice", &uid, &gid));
    CHECK_EQ(uid, 5);
    CHECK(find("half", &uid, NULL)); /* a group file has no more */
    CHECK_EQ(uid, 7);
}

TEST(lines_that_are_none_are_passed_over)
{
    static const char *const names[] = { "", "short", "half", "big", "long", "minus", "x",
        "# a comment", "ww", "wwww", "4294967295", "1" };
    unsigned uid = 0;
    unsigned gid = 0;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        CHECK(!find(names[i], &uid, &gid));
}
