#include "base/err.h"
#include "base/options.h"
#include "harness.h"
#include <errno.h>
#include <string.h>

struct old {
    size_t size;
    long a;
};

struct now {
    size_t size;
    long a;
    long b;
};

struct newer {
    size_t size;
    long a;
    long b;
    long c;
};

#define NOW_INIT                                                                               \
    {                                                                                          \
        .size = sizeof(struct now), .a = 1, .b = 2                                             \
    }

TEST(no_options_are_the_defaults)
{
    struct now own = NOW_INIT;

    CHECK_EQ(OPTIONS_TAKE(&own, NULL, NOW_INIT, NULL), 0);
    CHECK_EQ(own.a, 1);
    CHECK_EQ(own.b, 2);
}

TEST(an_older_caller_gets_the_defaults_of_what_it_does_not_know)
{
    const struct old given = { .size = sizeof(given), .a = 7 };
    struct now own = NOW_INIT;

    CHECK_EQ(OPTIONS_TAKE(&own, &given, NOW_INIT, NULL), 0);
    CHECK_EQ(own.size, sizeof(own));
    CHECK_EQ(own.a, 7);
    CHECK_EQ(own.b, 2);
}

TEST(a_newer_caller_is_refused_if_it_sets_what_is_not_known)
{
    struct newer given = { .size = sizeof(given), .a = 7, .b = 8 };
    struct carrel_error err = { 0 };
    struct now own = NOW_INIT;

    CHECK_EQ(OPTIONS_TAKE(&own, &given, NOW_INIT, &err), 0);
    CHECK_EQ(own.b, 8);
    given.c = 1;
    CHECK_EQ(OPTIONS_TAKE(&own, &given, NOW_INIT, &err), -EINVAL);
    CHECK_STR(err.message,
            "the options set a member that this version of the library does not know");
}

TEST(what_has_no_size_is_refused)
{
    struct now given = { .a = 7 };
    struct carrel_error err = { 0 };
    struct now own = NOW_INIT;

    CHECK_EQ(OPTIONS_TAKE(&own, &given, NOW_INIT, &err), -EINVAL);
    CHECK(strstr(err.message, "start from NOW_INIT"));
    given.size = (size_t)-1;
    CHECK_EQ(OPTIONS_TAKE(&own, &given, NOW_INIT, &err), -EINVAL);
    CHECK_EQ(OPTIONS_GIVE(&given, &own, NOW_INIT, &err), -EINVAL);
    CHECK_EQ(own.a, 1);
}

TEST(an_answer_fits_the_caller)
{
    struct old old = { .size = sizeof(old) };
    struct newer newer = { .size = sizeof(newer), .c = 9 };
    const struct now own = NOW_INIT;

    CHECK_EQ(OPTIONS_GIVE(&old, &own, NOW_INIT, NULL), 0);
    CHECK_EQ(old.size, sizeof(old));
    CHECK_EQ(old.a, 1);
    CHECK_EQ(OPTIONS_GIVE(&newer, &own, NOW_INIT, NULL), 0);
    CHECK_EQ(newer.size, sizeof(newer));
    CHECK_EQ(newer.b, 2);
    CHECK_EQ(newer.c, 0);
}
