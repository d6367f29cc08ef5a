/* limits.c - limits are enforced or refused. */
#include "harness.h"
#include "place.h"
#include <errno.h>
#include <stdlib.h>

CONTRACT(a_demanded_limit_is_held_or_refused)
{
    for (unsigned i = 0; i < LIMIT_COUNT; i++) {
        AUTO(sandbox_free) struct sandbox *box = NULL;
        struct sandbox_spec spec = plain_spec();
        if (i >= LIMIT_OPTIONAL)
            spec.limits.value[i] = 1U << 20;
        spec.limits.demanded = LIMIT_BIT(i);
        int r = create(&spec, &box);
        CHECK(r == 0 || r == -ENOTSUP);
        if (r == 0)
            CHECK(box->held_by[i] != HELD_BY_NOTHING);
        else
            CHECK(strstr(err.message, limit_name(i)));
    }
}

CONTRACT(a_limit_without_a_value_is_none)
{
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();

    for (unsigned i = LIMIT_OPTIONAL; i < LIMIT_COUNT; i++)
        CHECK_EQ(box->held_by[i], HELD_BY_NOTHING);
}

CONTRACT(a_limit_that_is_best_effort_is_never_a_reason_to_refuse)
{
    AUTO(sandbox_free) struct sandbox *box = NULL;
    struct sandbox_spec spec = plain_spec();

    for (unsigned i = LIMIT_OPTIONAL; i < LIMIT_COUNT; i++)
        spec.limits.value[i] = 1U << 20;
    spec.limits.demanded = LIMIT_BIT(LIMIT_COUNT) - 1;
    spec.limits.best_effort = LIMIT_BIT(LIMIT_COUNT) - 1;
    CHECK_EQ(create(&spec, &box), 0);
}

CONTRACT(limits_that_make_no_sense_are_refused)
{
    struct sandbox_spec spec = plain_spec();
    struct sandbox *box = NULL;

    spec.limits.demanded = LIMIT_BIT(LIMIT_COUNT);
    CHECK_EQ(create(&spec, &box), -EINVAL);
    spec = plain_spec();
    spec.limits.demanded = LIMIT_BIT(LIMIT_PIDS);
    spec.limits.value[LIMIT_PIDS] = 0;
    CHECK_EQ(create(&spec, &box), -EINVAL);
    CHECK(strstr(err.message, "pids"));
    spec = plain_spec();
    spec.id = "../elsewhere";
    CHECK_EQ(create(&spec, &box), -EINVAL);
}

CONTRACT(the_files_limit_holds)
{
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    AUTO(outcome_finish)
    struct outcome got = run_shell(box, "ulimit -n; ulimit -n 201 2>/dev/null || echo fixed");

    CHECK(box->held_by[LIMIT_FILES] != HELD_BY_NOTHING);
    CHECK_STR(got.out.data, "200\nfixed\n");
}

/*
 * Enforced for the whole or for each process: a single one that takes too much is stopped by
 * both.
 */
CONTRACT(the_memory_limit_stops_a_single_program)
{
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    AUTO(outcome_finish)
    struct outcome got = run_shell(box, "head -c 400M /dev/zero | tail -c 400M >/dev/null");

    if (box->held_by[LIMIT_MEMORY] == HELD_BY_NOTHING)
        SKIP("nothing holds memory here");
    CHECK(got.status != 0);
}

CONTRACT(the_disk_limit_stops_a_single_file)
{
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    AUTO(outcome_finish) struct outcome got = run_shell(box, "head -c 80M /dev/zero >big");
    AUTO(outcome_finish) struct outcome size = run_shell(box, "wc -c <big");

    if (box->held_by[LIMIT_DISK] == HELD_BY_NOTHING)
        SKIP("nothing holds disk space here");
    CHECK(got.status != 0);
    CHECK(strtoul(size.out.data, NULL, 10) <= 65U << 20); /* a little for the directories */
}
