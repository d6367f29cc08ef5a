/*
 * lease.c - a sandbox that ends by itself.
 *
 * Nothing here measures time: a lease in the past ends at once, one an hour ahead does not
 * expire during a test, and everything in between is waited for.
 */
#include "base/fd.h"
#include "harness.h"
#include "place.h"
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#define HOUR_NS (UINT64_C(3600) * 1000000000)
#define HOUR_MS (UINT64_C(3600) * 1000)

static uint64_t boottime(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_BOOTTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* False: the subject refuses leases, with the usual message. */
static bool set_lease(struct sandbox *box, uint64_t end_ns, uint64_t idle_ms)
{
    int r = sandbox_set_lease(box, end_ns, idle_ms, &err);

    if (r == -ENOTSUP) {
        CHECK(strstr(err.message, runtime_name(subject)));
        return false;
    }
    if (r < 0)
        test_fail(__FILE__, __LINE__, "%s", err.message);
    return true;
}

static struct process start_sleep(struct sandbox *box)
{
    return start_shell(box, "(trap '' TERM; setsid sleep 1000) & echo ready; exec sleep 1000");
}

/* When it is reported every process has exited, and the report can be read again. */
static void check_gone(struct sandbox *box, enum gone_why why)
{
    struct sandbox_event event = await_event(box);
    struct sandbox_usage usage;

    CHECK_EQ(event.kind, EVENT_GONE);
    CHECK_EQ(event.why, why);
    event = await_event(box);
    CHECK_EQ(event.kind, EVENT_GONE);
    CHECK_EQ(event.why, why);
    CHECK_EQ(sandbox_stop(box, &usage, &err), 0);
    CHECK(usage.cpu_ms != USAGE_UNKNOWN);
}

CONTRACT(a_lease_that_has_run_out_ends_everything)
{
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    AUTO(process_close) struct process process = start_sleep(box);
    AUTO(buf_finish) struct buf out = BUF_INIT(4096);

    read_until(process.stdout_fd, &out, "ready");
    if (!set_lease(box, boottime() - 1, 0))
        return;
    read_to_end(process.stdout_fd, &out); /* both sleeps had it open */
    const struct sandbox_event event = await_event(box);
    CHECK_EQ(event.kind, EVENT_EXITED);
    CHECK_EQ(event.process, process.id);
    CHECK(WIFSIGNALED(event.wait_status) && WTERMSIG(event.wait_status) == SIGKILL);
    CHECK(event.is_with_all);
    check_gone(box, GONE_LEASE);
}

CONTRACT(a_lease_ends_a_sandbox_that_nobody_speaks_with)
{
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();

    if (set_lease(box, boottime() + 20000000, 0))
        check_gone(box, GONE_LEASE);
}

CONTRACT(a_renewed_lease_counts_and_none_is_none)
{
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();

    if (!set_lease(box, boottime() + HOUR_NS, HOUR_MS))
        return;
    AUTO(outcome_finish) struct outcome first = run_shell(box, "echo lives");
    CHECK_STR(first.out.data, "lives\n");
    CHECK(set_lease(box, 0, 0));
    AUTO(outcome_finish) struct outcome second = run_shell(box, "echo lives");
    CHECK_STR(second.out.data, "lives\n");
    CHECK(set_lease(box, boottime() + 2 * HOUR_NS, 0));
    CHECK(set_lease(box, boottime() + 10000000, 0)); /* earlier than the timer is armed for */
    check_gone(box, GONE_LEASE);
}

CONTRACT(an_idle_sandbox_ends)
{
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();

    if (set_lease(box, boottime() + HOUR_NS, 20))
        check_gone(box, GONE_IDLE);
}

/* Processes that the program left do not count: only those that were started from here. */
CONTRACT(a_sandbox_is_not_idle_while_a_started_program_runs_but_is_when_it_has_ended)
{
    const char *const argv[] = { "sh", "-c",
        "sleep 1000 >/dev/null & for i in 1 2 3 4 5 6; do sleep 0.02; done; echo done; read l",
        NULL };
    struct process_spec spec = plain_process(argv);
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    AUTO(buf_finish) struct buf out = BUF_INIT(4096);

    spec.has_stdin = true;
    struct process process = start(box, &spec);
    if (!set_lease(box, 0, 20)) {
        process_close(process);
        return;
    }
    read_until(process.stdout_fd, &out, "done"); /* it has run much longer than the idle time */
    fd_close(fd_steal(&process.stdin_fd));
    AUTO(outcome_finish) struct outcome got = finish(box, &process);
    CHECK(WIFEXITED(got.status));
    check_gone(box, GONE_IDLE);
}

CONTRACT(a_sandbox_that_has_ended_by_itself_refuses_politely)
{
    const char *const argv[] = { "true", NULL };
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();

    if (!set_lease(box, 1, 0))
        return;
    CHECK_EQ(await_event(box).kind, EVENT_GONE);
    CHECK(try_start(box, argv, NULL) < 0);
    CHECK(sandbox_set_lease(box, 0, 0, &err) < 0);
    CHECK(sandbox_open_file(box, "x", 0, 0, &err) < 0);
    CHECK_EQ(sandbox_stop(box, NULL, &err), 0);
    CHECK_EQ(sandbox_set_lease(box, 0, 0, &err), -ESHUTDOWN);
}

CONTRACT(times_out_of_range_are_refused)
{
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    int r = sandbox_set_lease(box, UINT64_MAX, 0, &err);

    CHECK(r == -EINVAL || r == -ENOTSUP);
    CHECK_EQ(sandbox_set_lease(box, 0, UINT64_MAX, &err), r);
}

/* Unread reports must neither keep it alive nor make it spin: its programs have exited. */
CONTRACT(a_lease_ends_programs_though_nobody_reads_events)
{
    const char *const argv[] = { "true", NULL };
    const struct process_spec spec = plain_process(argv);
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    AUTO(process_close) struct process sleeper = start_sleep(box);
    AUTO(buf_finish) struct buf out = BUF_INIT(4096);

    read_until(sleeper.stdout_fd, &out, "ready");
    if (!set_lease(box, 0, 0))
        return;
    for (int i = 0; i < 400; i++) { /* more than a socket holds */
        AUTO(process_close) struct process process = start(box, &spec);
        AUTO(buf_finish) struct buf end = BUF_INIT(64);
        read_to_end(process.stdout_fd, &end);
    }
    CHECK(set_lease(box, 1, 0));
    read_to_end(sleeper.stdout_fd, &out);
    CHECK_EQ(sandbox_stop(box, NULL, &err), 0);
}
