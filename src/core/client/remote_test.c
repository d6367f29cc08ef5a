/* remote_test.c - when a keeper that does not answer is given up. */
#include "core/client/remote.h"
#include "harness.h"

static struct sandbox_process keeper;

static const char *look_again(struct keeper_check *look, char state, enum keeper_kind kind)
{
    keeper.state = state;
    return distant_judge(look, &keeper, kind);
}

TEST(one_that_is_stopped_is_given_up_at_once)
{
    struct keeper_check look = KEEPER_CHECK_INIT;
    CHECK_STR(look_again(&look, 'T', KEEPER_DESTROY), "is stopped");
    CHECK_STR(look_again(&look, 't', KEEPER_HELLO), "is stopped");
}

TEST(one_that_sleeps_for_a_minute_is_given_up)
{
    struct keeper_check look = KEEPER_CHECK_INIT;
    for (int i = 0; i * KEEPER_CHECK_MS < 50000; i++)
        CHECK(!look_again(&look, 'S', KEEPER_HELLO));
    CHECK_STR(look_again(&look, 'S', KEEPER_HELLO), "sleeps");
}

TEST(one_that_does_something_is_waited_for)
{
    struct keeper_check look = KEEPER_CHECK_INIT;
    for (int i = 0; i < 100; i++) {
        keeper.cpu_ms += i % 5 == 0; /* in four looks of five it slept */
        CHECK(!look_again(&look, 'S', KEEPER_HELLO));
    }
    for (int i = 0; i < 100; i++)
        CHECK(!look_again(&look, i % 5 == 0 ? 'R' : 'S', KEEPER_HELLO));
    for (int i = 0; i < 100; i++)
        CHECK(!look_again(&look, 'D', KEEPER_HELLO));
}

TEST(a_request_that_may_sleep_is_waited_for)
{
    static const enum keeper_kind kinds[] = { KEEPER_SNAPSHOT, KEEPER_FORK, KEEPER_DESTROY };
    for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
        struct keeper_check look = KEEPER_CHECK_INIT;
        for (int i = 0; i < 100; i++)
            CHECK(!look_again(&look, 'S', kinds[k]));
    }
}
