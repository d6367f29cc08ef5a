/* A guest is played by the test itself, at the other ends of the two streams. */
#include "base/err.h"
#include "base/fd.h"
#include "core/run/guest.h"
#include "harness.h"
#include "runtime/runtime.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct carrel_error err;

struct talk {
    struct guest guest;
    struct process process;
    struct loop loop;
    int theirs[2]; /* where the guest reads, and where it writes */
};

static void begin(struct talk *talk, const char *task, size_t len, size_t max)
{
    int down[2];
    int up[2];

    CHECK_EQ(pipe2(down, O_CLOEXEC | O_NONBLOCK), 0);
    CHECK_EQ(pipe2(up, O_CLOEXEC), 0);
    *talk = (struct talk){
        .guest = { .task = task,
                .task_len = len,
                .findings = BUF_INIT(max),
                .report = BUF_INIT(max) },
        .process = PROCESS_INIT,
        .theirs = { down[0], up[1] },
    };
    talk->process.extra_fds[0] = down[1];
    talk->process.extra_fds[1] = up[0];
    CHECK_EQ(loop_init(&talk->loop, &err), 0);
    CHECK_EQ(guest_begin(&talk->guest, &talk->loop, &talk->process, &err), 0);
}

static void end(struct talk *talk)
{
    guest_end(&talk->guest);
    guest_finish(&talk->guest);
    process_close(talk->process);
    loop_finish(&talk->loop);
    fd_close(talk->theirs[0]);
    fd_close(talk->theirs[1]);
}

static void say(struct talk *talk, const char *text)
{
    CHECK_EQ(fd_write_all(talk->theirs[1], text, strlen(text)), 0);
    CHECK_EQ(loop_turn(&talk->loop, &err), 0);
}

/* What the guest can read now. */
static const char *hear(struct talk *talk)
{
    static char text[64];
    ssize_t n = read(talk->theirs[0], text, sizeof(text) - 1);

    text[n < 0 ? 0 : n] = '\0';
    return n == 0 ? "end" : text;
}

TEST(the_task_goes_first_and_the_findings_are_acknowledged)
{
    struct talk talk;

    begin(&talk, "task", 4, 100);
    CHECK_EQ(loop_turn(&talk.loop, &err), 0);
    CHECK_STR(hear(&talk), "task");
    CHECK_STR(hear(&talk), ""); /* nothing yet, and no end */
    say(&talk, "find");
    CHECK(!talk.guest.has_findings);
    CHECK_STR(hear(&talk), "");
    say(&talk, "ings\nre");
    CHECK(talk.guest.has_findings);
    CHECK_STR(hear(&talk), "\n");
    CHECK_STR(hear(&talk), "end");
    CHECK_EQ(fd_write_all(talk.theirs[1], "port\n", 5), 0);
    guest_end(&talk.guest); /* reads the rest */
    CHECK_STR(talk.guest.findings.data, "findings");
    CHECK_STR(talk.guest.report.data, "report\n");
    end(&talk);
}

TEST(findings_that_are_too_long_are_none_and_nothing_is_acknowledged)
{
    static const char *const all[] = { "123456", "123456\nreport" };

    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        struct talk talk;
        begin(&talk, "", 0, 5);
        say(&talk, all[i]);
        CHECK(!talk.guest.has_findings);
        CHECK_STR(hear(&talk), "end");
        end(&talk);
    }
}

TEST(a_report_that_is_too_long_is_cut_off)
{
    struct talk talk;

    begin(&talk, "", 0, 5);
    say(&talk, "fine\n");
    say(&talk, "123456");
    CHECK(talk.guest.has_findings);
    CHECK(talk.guest.report.is_short);
    CHECK_EQ(fd_write_no_signal(talk.theirs[1], "x", 1), -1);
    CHECK_EQ(errno, EPIPE);
    end(&talk);
}

TEST(a_guest_that_reads_nothing_and_ends_is_no_error)
{
    enum { MUCH = 1 << 20 };
    AUTO(free) char *task = calloc(1, MUCH);
    struct talk talk;

    CHECK(task);
    begin(&talk, task, MUCH, 5);
    CHECK_EQ(loop_turn(&talk.loop, &err), 0); /* as much as the pipe holds */
    CHECK(talk.guest.written > 0 && talk.guest.written < MUCH);
    fd_close(fd_steal(&talk.theirs[0]));
    CHECK_EQ(loop_turn(&talk.loop, &err), 0);
    CHECK_EQ(talk.process.extra_fds[0], -1);
    say(&talk, "f\n");
    CHECK(talk.guest.has_findings);
    end(&talk);
}
