/* keeper_alive_test.c - when a keeper that does not answer is given up. */
#include "core/client/keeper_alive.h"
#include "harness.h"
#include "runtime/runtime.h"

static struct sandbox_process keeper;

static const char *check_again(struct keeper_check *check, char state, enum keeper_kind kind)
{
    keeper.state = state;
    return keeper_is_stuck(check, &keeper, kind);
}

TEST(a_stopped_keeper_is_given_up_at_once)
{
    struct keeper_check check = KEEPER_CHECK_INIT;
    CHECK_STR(check_again(&check, 'T', KEEPER_DESTROY), "is stopped");
    CHECK_STR(check_again(&check, 't', KEEPER_HELLO), "is stopped");
}

TEST(a_keeper_that_sleeps_for_a_minute_is_given_up)
{
    struct keeper_check check = KEEPER_CHECK_INIT;
    for (int i = 0; i * KEEPER_CHECK_MS < 50000; i++)
        CHECK(!check_again(&check, 'S', KEEPER_HELLO));
    CHECK_STR(check_again(&check, 'S', KEEPER_HELLO), "sleeps");
}

TEST(a_keeper_that_uses_cpu_is_waited_for)
{
    struct keeper_check check = KEEPER_CHECK_INIT;
    for (int i = 0; i < 100; i++) {
        keeper.cpu_ms += i % 5 == 0; /* in four checks of five it slept */
        CHECK(!check_again(&check, 'S', KEEPER_HELLO));
    }
    for (int i = 0; i < 100; i++)
        CHECK(!check_again(&check, i % 5 == 0 ? 'R' : 'S', KEEPER_HELLO));
    for (int i = 0; i < 100; i++)
        CHECK(!check_again(&check, 'D', KEEPER_HELLO));
}

TEST(a_request_that_may_sleep_is_waited_for)
{
    static const enum keeper_kind kinds[] = { KEEPER_SNAPSHOT, KEEPER_FORK, KEEPER_DESTROY };
    for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
        struct keeper_check check = KEEPER_CHECK_INIT;
        for (int i = 0; i < 100; i++)
            CHECK(!check_again(&check, 'S', kinds[k]));
    }
}
