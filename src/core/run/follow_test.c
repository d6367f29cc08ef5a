/* A sandbox that says whatever the test wants, to see what a run makes of it. */
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "core/disk/disk.h"
#include "core/result/capture.h"
#include "core/result/result.h"
#include "core/run/follow.h"
#include "harness.h"
#include "runtime/runtime.h"
#include <fcntl.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

static struct carrel_error err;
static struct sandbox_event next;

static int next_event(struct sandbox *box, struct sandbox_event *event, struct carrel_error *e)
{
    (void)box;
    (void)e;
    *event = next;
    return 0;
}

static int send_signal(
        struct sandbox *box, uint32_t process, int signal, struct carrel_error *e)
{
    (void)box;
    (void)process;
    (void)signal;
    (void)e;
    return 0;
}

static const struct runtime_ops ops = {
    .name = "puppet", .next_event = next_event, .signal = send_signal
};

/* Follows a program until the event; its streams stay open on the other side. */
static struct carrel_run_result *follow_until(
        const struct sandbox_event *event, struct follow *follow)
{
    struct carrel_run_options options = CARREL_RUN_OPTIONS_INIT;
    struct process process = PROCESS_INIT;
    struct disk disk = DISK_INIT;
    struct capture kept[2];
    struct sandbox box;
    int out[2];

    sandbox_init(&box, &ops);
    next = *event;
    box.event_fd = eventfd(1, EFD_CLOEXEC);
    CHECK_EQ(pipe2(out, O_CLOEXEC | O_NONBLOCK), 0);
    process.id = 1;
    process.stdout_fd = out[0];
    CHECK_EQ(write(out[1], "said\n", 5), 5);
    CHECK_EQ(capture_init(&kept[0], 1000, NULL, 0), 0);
    CHECK_EQ(capture_init(&kept[1], 1000, NULL, 0), 0);
    follow->options = &options;
    follow->box = &box;
    follow->process = &process;
    follow->disk = &disk;
    follow->out = &kept[0];
    follow->err = &kept[1];
    if (!follow->deadline_ns)
        follow->deadline_ns = CLOCK_NEVER;
    CHECK_EQ(follow_begin(follow, &err), 0);
    CHECK_EQ(follow_to_end(follow, &err), 0);
    struct carrel_run_result *result = result_new();
    CHECK(result);
    follow_conclude(follow, result);
    follow_flush(follow); /* does not wait for ever */
    result_set_reason(result);
    follow_finish(follow);
    capture_finish(&kept[0]);
    capture_finish(&kept[1]);
    process_close(process);
    fd_close(box.event_fd);
    fd_close(out[1]);
    return result;
}

TEST(a_lost_sandbox_is_infrastructure_and_has_no_status)
{
    const struct sandbox_event lost = { .kind = EVENT_GONE, .why = GONE_LOST };
    struct follow *follow = calloc(1, sizeof(*follow));

    CHECK(follow);
    struct carrel_run_result *result = follow_until(&lost, follow);
    CHECK_EQ(result->reason, CARREL_INFRASTRUCTURE);
    CHECK(!result->has_status);
    CHECK_STR(result->message,
            "The sandbox is out of reach: what became of the program is not known");
    carrel_run_result_free(result);
    free(follow);
}

/* Its timeout does not make it known either. */
TEST(a_sandbox_that_is_lost_while_it_ends_is_lost)
{
    const struct sandbox_event lost = { .kind = EVENT_GONE, .why = GONE_LOST };
    struct follow *follow = calloc(1, sizeof(*follow));

    CHECK(follow);
    follow->is_ending = true;
    follow->reason = CARREL_TIMEOUT;
    struct carrel_run_result *result = follow_until(&lost, follow);
    CHECK_EQ(result->reason, CARREL_INFRASTRUCTURE);
    CHECK(!result->has_status);
    carrel_run_result_free(result);
    free(follow);
}

TEST(an_exit_that_was_seen_is_the_status)
{
    const struct sandbox_event exited = {
        .kind = EVENT_EXITED, .process = 1, .wait_status = 7 << 8
    };
    struct follow *follow = calloc(1, sizeof(*follow));

    CHECK(follow);
    follow->may_linger = true; /* as its stream stays open here */
    struct carrel_run_result *result = follow_until(&exited, follow);
    CHECK_EQ(result->reason, CARREL_EXITED);
    CHECK(result->has_status);
    CHECK_EQ(result->wait_status, 7 << 8);
    carrel_run_result_free(result);
    free(follow);
}
