/* Every operation of the port fails where a test says so, in the words of the front. */
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "harness.h"
#include "runtime/fake/fake.h"
#include "runtime/runtime.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct carrel_error err;
static struct runtime *fake;

static const struct sandbox_spec spec = {
    .id = "fake-test",
    .network = NETWORK_HOST,
    .limits.value = { 256U << 20, 64, 1000, 64U << 20, 200 },
};

static int start(struct sandbox *box, struct process *process)
{
    static const char *const argv[] = { "cat", NULL };
    static const char *const env[] = { "PATH=/usr/bin:/bin", NULL };
    const struct process_spec cat = { .argv = argv, .env = env, .has_stdin = true };

    return sandbox_start(box, &cat, process, &err);
}

/* One call of `op`; `process` runs. */
static int call(enum fake_op op, struct sandbox *box, const struct process *process)
{
    AUTO(sandbox_free) struct sandbox *other = NULL;
    AUTO(process_close) struct process second = PROCESS_INIT;
    const struct sandbox_limits limits = { .value = { [LIMIT_PIDS] = 10 } };
    struct sandbox_usage usage;
    struct sandbox_event event;
    struct sandbox_process all[8];
    static struct runtime_health health;
    int fd;

    switch (op) {
    case FAKE_CREATE:
        return sandbox_begin(fake, &spec, &other, &err);
    case FAKE_READY:
        return sandbox_ready(box, CLOCK_NEVER, -1, &err);
    case FAKE_START:
        return start(box, &second);
    case FAKE_NEXT_EVENT:
        return sandbox_next_event(box, &event, &err);
    case FAKE_SIGNAL:
        return sandbox_signal(box, process->id, SIGCONT, &err);
    case FAKE_TERMINATE:
        return sandbox_terminate(box, process->id, 0, &err);
    case FAKE_RESIZE:
        return sandbox_resize(box, process, 10, 10, &err);
    case FAKE_STOP:
        return sandbox_stop(box, &usage, &err);
    case FAKE_END:
        return sandbox_end(box, &usage, &err);
    case FAKE_USAGE:
        return sandbox_usage(box, &usage, &err);
    case FAKE_FILE:
        fd = sandbox_open_file(box, ".", 0, 0, &err);
        return fd < 0 ? fd : -EISDIR;
    case FAKE_PS:
        return sandbox_ps(box, all, 8, &err);
    case FAKE_PAUSE:
        return sandbox_pause(box, &err);
    case FAKE_RESUME:
        box->paused_by = "signals"; /* else the front does not ask */
        return sandbox_resume(box, &err);
    case FAKE_SET_LEASE:
        return sandbox_set_lease(box, 0, 0, &err);
    case FAKE_UPDATE:
        box->held_by[LIMIT_PIDS] = HELD_BY_CGROUP;
        return sandbox_update(box, &limits, LIMIT_BIT(LIMIT_PIDS), &err);
    case FAKE_HEALTH:
        return runtime_health(fake, 0, &health, &err);
    case FAKE_SWEEP:
        return runtime_sweep(fake, &err);
    case FAKE_OP_COUNT:
        break;
    }
    return 0;
}

static void fail_each(enum fault_kind kind, const char *how)
{
    CHECK_EQ(runtime_find("fake", &fake, &err), 0);
    for (enum fake_op op = 0; op < FAKE_OP_COUNT; op++) {
        const struct fake_fault fault = { op, 1, kind, -EIO };
        AUTO(sandbox_free) struct sandbox *box = NULL;
        AUTO(process_close) struct process process = PROCESS_INIT;
        char expected[128];
        fake_inject(NULL);
        CHECK_EQ(sandbox_create(fake, &spec, &box, &err), 0);
        CHECK_EQ(start(box, &process), 0);
        fake_inject(&fault);
        const int r = call(op, box, &process);
        (void)snprintf(expected, sizeof(expected), "runtime fake: %s%s", fake_op_name(op), how);
        if (r != -EIO || strncmp(err.message, expected, strlen(expected)) != 0)
            test_fail(__FILE__, __LINE__, "%s: %d: %s", fake_op_name(op), r, err.message);
        CHECK_EQ(fake_calls(op), 1);
        box->paused_by = NULL;
    }
}

TEST(each_operation_fails_on_request)
{
    fail_each(FAULT_BEFORE, " fails on request: ");
}

TEST(each_operation_can_lose_the_connection)
{
    /* Events say so in their own way. */
    const struct fake_fault fault = { FAKE_SIGNAL, 1, FAULT_LOST, -EIO };
    AUTO(sandbox_free) struct sandbox *box = NULL;
    AUTO(process_close) struct process process = PROCESS_INIT;
    struct sandbox_event event;
    char byte;

    CHECK_EQ(runtime_find("fake", &fake, &err), 0);
    CHECK_EQ(sandbox_create(fake, &spec, &box, &err), 0);
    CHECK_EQ(start(box, &process), 0);
    fake_inject(&fault);
    for (enum fake_op op = FAKE_SIGNAL; op < FAKE_HEALTH; op++) {
        CHECK_EQ(call(op, box, &process), -EIO);
        CHECK(strstr(err.message, "the connection is lost"));
    }
    struct pollfd ready = { .fd = box->event_fd, .events = POLLIN };
    CHECK_EQ(poll(&ready, 1, 0), 1);
    CHECK_EQ(sandbox_next_event(box, &event, &err), 0);
    CHECK_EQ(event.kind, EVENT_GONE);
    CHECK_EQ(event.why, GONE_LOST);
    CHECK_EQ(fd_read_all(process.stdout_fd, &byte, 1), 0); /* the streams end as well */
    CHECK_EQ(sandbox_end(box, NULL, &err), 0);
    CHECK_EQ(sandbox_stop(box, NULL, &err), 0);
}

/* `process` cannot pause. */
static struct sandbox *make_that_pauses(void)
{
    struct sandbox *box = NULL;

    fake_wrap("local");
    CHECK_EQ(runtime_find("fake", &fake, &err), 0);
    int r = sandbox_create(fake, &spec, &box, &err);
    if (r == -ENOTSUP)
        SKIP("%s", err.message);
    CHECK_STR(r < 0 ? err.message : "", "");
    return box;
}

/* Whether the far side takes a program, whatever is believed on this one. */
static int start_there(struct sandbox *box)
{
    AUTO(process_close) struct process process = PROCESS_INIT;

    box->paused_by = NULL;
    return start(box, &process);
}

TEST(a_pause_whose_answer_is_lost_is_undone_by_a_resume)
{
    const struct fake_fault fault = { FAKE_PAUSE, 1, FAULT_AFTER, -EIO };
    AUTO(sandbox_free) struct sandbox *box = make_that_pauses();

    fake_inject(&fault);
    CHECK_EQ(sandbox_pause(box, &err), -EIO);
    CHECK_EQ(start_there(box), -EAGAIN);
    CHECK_EQ(sandbox_resume(box, &err), 0);
    CHECK_EQ(start_there(box), 0);
    CHECK_EQ(fake_calls(FAKE_RESUME), 1);
    CHECK_EQ(sandbox_resume(box, &err), 0); /* it is known to run: nothing is asked */
    CHECK_EQ(fake_calls(FAKE_RESUME), 1);
}

TEST(a_resume_whose_answer_is_lost_does_not_keep_a_pause_from_its_effect)
{
    const struct fake_fault fault = { FAKE_RESUME, 1, FAULT_AFTER, -EIO };
    AUTO(sandbox_free) struct sandbox *box = make_that_pauses();

    fake_inject(&fault);
    CHECK_EQ(sandbox_pause(box, &err), 0);
    CHECK_EQ(sandbox_resume(box, &err), -EIO);
    CHECK_EQ(sandbox_pause(box, &err), 0);
    CHECK_EQ(start_there(box), -EAGAIN);
}

TEST(a_start_whose_answer_is_lost_has_started)
{
    const struct fake_fault fault = { FAKE_START, 1, FAULT_AFTER, -EIO };
    AUTO(sandbox_free) struct sandbox *box = NULL;
    AUTO(process_close) struct process process = PROCESS_INIT;
    struct sandbox_event event = { .kind = EVENT_NONE };

    CHECK_EQ(runtime_find("fake", &fake, &err), 0);
    CHECK_EQ(sandbox_create(fake, &spec, &box, &err), 0);
    fake_inject(&fault);
    CHECK_EQ(start(box, &process), -EIO);
    CHECK_EQ(process.stdout_fd, -1);
    struct pollfd ready = { .fd = box->event_fd, .events = POLLIN };
    CHECK_EQ(poll(&ready, 1, 20000), 1); /* cat ends with its input, which is closed */
    CHECK_EQ(sandbox_next_event(box, &event, &err), 0);
    CHECK_EQ(event.kind, EVENT_EXITED);
}
