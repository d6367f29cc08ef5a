/* pace_test.c - a reader that works, and one that rests. */
#include "core/run/pace.h"
#include "harness.h"

#define MS UINT64_C(1000000)

static struct pace pace_of(uint64_t cpu_milli)
{
    struct pace pace;

    pace_begin(&pace, cpu_milli);
    pace.seen_ns = pace.seen_cpu_ns = 0;
    return pace;
}

TEST(a_burst_is_copied_at_once)
{
    struct pace pace = pace_of(1000);

    CHECK_EQ(pace_look_at(&pace, 50 * MS, 50 * MS), 0);
    CHECK_EQ(pace_look_at(&pace, 100 * MS, 100 * MS), 0);
}

TEST(a_flood_makes_the_reader_rest_until_it_is_paid)
{
    struct pace pace = pace_of(1000);

    /* 200 ms used, 50 ms earned: 50 ms beyond the burst, and a step, at a quarter. */
    uint64_t rest = pace_look_at(&pace, 200 * MS, 200 * MS);
    CHECK_EQ(rest, 200 * MS + 4 * 52 * MS);
    CHECK(pace_look_at(&pace, rest - 20 * MS, 200 * MS) > 0);
    CHECK_EQ(pace_look_at(&pace, rest, 200 * MS), 0);
}

TEST(the_share_follows_the_sandboxs_limit)
{
    struct pace small = pace_of(100);
    struct pace large = pace_of(8000);

    CHECK_EQ(pace_look_at(&small, 200 * MS, 110 * MS),
            200 * MS + (110 - 5 - 100 + 2) * MS * 1000 / 25);
    CHECK_EQ(pace_look_at(&large, 5000 * MS, 5000 * MS), 0);
}

TEST(what_was_not_used_is_not_saved)
{
    struct pace pace = pace_of(1000);

    CHECK_EQ(pace_look_at(&pace, 3600000 * MS, 0), 0);
    CHECK(pace_look_at(&pace, 3600200 * MS, 200 * MS) > 0);
}
