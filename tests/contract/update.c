/* update.c - changing the limits of a living sandbox. */
#include "harness.h"
#include "place.h"
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <time.h>

static int update(struct sandbox *box, enum limit limit, uint64_t value)
{
    struct sandbox_limits limits = { .value[0] = 0 };

    limits.value[limit] = value;
    return sandbox_update(box, &limits, LIMIT_BIT(limit), &err);
}

/* If a cgroup does not enforce the limit, a change is refused with the reason. */
static bool can_update(struct sandbox *box, enum limit limit, uint64_t value)
{
    int r = update(box, limit, value);

    if (box->held_by[limit] == HELD_BY_CGROUP && r < 0)
        test_fail(__FILE__, __LINE__, "%s", err.message);
    if (r == 0)
        return true;
    CHECK_EQ(r, -ENOTSUP);
    CHECK(strstr(err.message, runtime_name(subject)));
    return false;
}

/* Takes so many megabytes in one program, if it can. */
static int take(struct sandbox *box, unsigned megabytes)
{
    char line[128];

    (void)snprintf(
            line, sizeof(line), "dd if=/dev/zero of=/dev/null bs=%u count=1", megabytes << 20);
    AUTO(outcome_finish) struct outcome got = run_shell(box, line);
    return got.status;
}

static const char six_processes[] =
        "for i in 1 2 3 4 5 6; do sleep 1000 >/dev/null 2>&1 & done; kill $!";

CONTRACT(more_and_less_memory_counts_at_once)
{
    AUTO(sandbox_free) struct sandbox *box = make_sandbox(); /* 256 MB */

    if (!can_update(box, LIMIT_MEMORY, 512U << 20))
        return;
    CHECK_EQ(take(box, 350), 0);
    CHECK(can_update(box, LIMIT_MEMORY, 64U << 20));
    CHECK(take(box, 100) != 0);
    CHECK_EQ(take(box, 20), 0);
    CHECK(can_update(box, LIMIT_MEMORY, 256U << 20));
    CHECK_EQ(take(box, 100), 0);
}

CONTRACT(memory_that_is_in_use_is_not_taken_away)
{
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    struct sandbox_limits limits = {
        .value = { [LIMIT_MEMORY] = 16U << 20, [LIMIT_PIDS] = 3, [LIMIT_CPU] = 100 },
    };
    /* It has read everything before it writes, and cannot write before we read. */
    const char *const argv[] = { "dd", "if=/dev/zero", "bs=41943040", "count=1", NULL };
    const struct process_spec spec = plain_process(argv);

    if (!can_update(box, LIMIT_MEMORY, 300U << 20))
        return;
    struct process process = start(box, &spec);
    struct pollfd begun = { .fd = process.stdout_fd, .events = POLLIN };
    CHECK_EQ(poll(&begun, 1, 20000), 1);
    CHECK_EQ(sandbox_update(box, &limits,
                     LIMIT_BIT(LIMIT_MEMORY) | LIMIT_BIT(LIMIT_PIDS) | LIMIT_BIT(LIMIT_CPU),
                     &err),
            -EBUSY);
    CHECK(strstr(err.message, "in use"));
    AUTO(outcome_finish) struct outcome many = run_shell(box, six_processes);
    CHECK_EQ(many.status, 0); /* none of it is in force, and no process was killed */
    AUTO(outcome_finish) struct outcome got = finish(box, &process);
    CHECK_EQ(got.status, 0);
    CHECK_EQ(got.out.len, 41943040);
}

CONTRACT(what_fails_halfway_is_undone)
{
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    struct sandbox_limits limits = {
        /* The last is impossible: the kernel's minimum is a hundredth of a processor. */
        .value = { [LIMIT_MEMORY] = 32U << 20, [LIMIT_PIDS] = 3, [LIMIT_CPU] = 1 },
    };

    int r = sandbox_update(box, &limits,
            LIMIT_BIT(LIMIT_MEMORY) | LIMIT_BIT(LIMIT_PIDS) | LIMIT_BIT(LIMIT_CPU), &err);
    CHECK(r == -EINVAL || r == -ENOTSUP);
    if (r == -ENOTSUP)
        return;
    CHECK_EQ(take(box, 100), 0);
    AUTO(outcome_finish) struct outcome many = run_shell(box, six_processes);
    CHECK_EQ(many.status, 0);
}

CONTRACT(fewer_processes_count_at_once)
{
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();

    if (!can_update(box, LIMIT_PIDS, 4))
        return;
    AUTO(outcome_finish) struct outcome few = run_shell(box, six_processes);
    CHECK(few.status != 0);
    CHECK(can_update(box, LIMIT_PIDS, 40));
    AUTO(outcome_finish) struct outcome more = run_shell(box, six_processes);
    CHECK_EQ(more.status, 0);
}

CONTRACT(less_of_the_processor_can_be_had)
{
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();

    if (!can_update(box, LIMIT_CPU, 200))
        return;
    CHECK(can_update(box, LIMIT_CPU, 1500));
    AUTO(outcome_finish) struct outcome still = run_shell(box, "echo works");
    CHECK_STR(still.out.data, "works\n");
}

CONTRACT(the_speed_of_disks_changes_where_the_sandbox_has_such_a_limit)
{
    struct sandbox_spec spec = plain_spec();
    AUTO(sandbox_free) struct sandbox *box = NULL;
    AUTO(sandbox_free) struct sandbox *without = make_sandbox();

    CHECK_EQ(update(without, LIMIT_IO_READ, 1U << 20), -ENOTSUP);
    for (unsigned i = LIMIT_OPTIONAL; i < LIMIT_COUNT; i++)
        spec.limits.value[i] = 1U << 20; /* not demanded: where it can be had */
    spec.id = "contract2";
    CHECK_EQ(create(&spec, &box), 0);
    for (unsigned i = LIMIT_OPTIONAL; i < LIMIT_COUNT; i++)
        if (can_update(box, (enum limit)i, 1U << 30))
            CHECK(can_update(box, (enum limit)i, 64U << 10));
    AUTO(outcome_finish) struct outcome still = run_shell(box, "echo works");
    CHECK_STR(still.out.data, "works\n");
}

CONTRACT(what_cannot_change_is_refused)
{
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    const struct sandbox_limits none = { .value[0] = 0 };

    CHECK_EQ(update(box, LIMIT_DISK, 1U << 30), -ENOTSUP);
    CHECK_EQ(update(box, LIMIT_FILES, 1000), -ENOTSUP);
    int r = update(box, LIMIT_MEMORY, 0);
    CHECK(r == -EINVAL || r == -ENOTSUP);
    r = sandbox_update(box, &none, 1U << 20, &err);
    CHECK(r == -EINVAL || r == -ENOTSUP);
    CHECK_EQ(sandbox_stop(box, NULL, &err), 0);
    CHECK_EQ(update(box, LIMIT_MEMORY, 1U << 30), -ESHUTDOWN);
}

CONTRACT(a_paused_sandbox_can_be_updated)
{
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    AUTO(process_close) struct process process = start_shell(box, "exec sleep 1000");

    if (sandbox_pause(box, &err) == 0)
        (void)can_update(box, LIMIT_MEMORY, 400U << 20);
}
