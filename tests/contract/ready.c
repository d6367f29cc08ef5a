/* ready.c - waiting until a sandbox is ready, with a deadline and a way to cancel. */
#include "base/clock.h"
#include "base/fd.h"
#include "harness.h"
#include "place.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

static struct sandbox *begin(void)
{
    struct sandbox *box = NULL;
    const struct sandbox_spec spec = plain_spec();

    if (sandbox_begin(subject, &spec, &box, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.message);
    return box;
}

/* Readable from the beginning. */
static int cancelled(void)
{
    int ends[2];

    CHECK_EQ(pipe2(ends, O_CLOEXEC), 0);
    CHECK_EQ(close(ends[1]), 0);
    return ends[0];
}

static void check_works(struct sandbox *box)
{
    AUTO(outcome_finish) struct outcome outcome = run_shell(box, "echo fine");

    CHECK_STR(outcome.out.data, "fine\n");
}

CONTRACT(what_was_begun_gets_ready)
{
    AUTO(sandbox_free) struct sandbox *box = begin();

    CHECK_EQ(sandbox_ready(box, CLOCK_NEVER, -1, &err), 0);
    CHECK_EQ(sandbox_ready(box, CLOCK_NEVER, -1, &err), 0);
    check_works(box);
}

CONTRACT(what_is_ready_stays_so_whatever_the_deadline)
{
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    AUTO(fd_close) int cancel = cancelled();

    CHECK_EQ(sandbox_ready(box, 0, cancel, &err), 0);
    check_works(box);
    CHECK_EQ(sandbox_stop(box, NULL, &err), 0);
    CHECK_EQ(sandbox_ready(box, CLOCK_NEVER, -1, &err), -ESHUTDOWN);
}

CONTRACT(after_a_deadline_or_a_cancel_it_can_be_waited_for_again)
{
    AUTO(sandbox_free) struct sandbox *box = begin();
    AUTO(fd_close) int cancel = cancelled();

    int r = sandbox_ready(box, 0, -1, &err);
    CHECK(r == 0 || r == -ETIMEDOUT);
    CHECK(r == 0 || strstr(err.message, runtime_name(subject)));
    r = sandbox_ready(box, CLOCK_NEVER, cancel, &err);
    CHECK(r == 0 || r == -ECANCELED);
    CHECK_EQ(sandbox_ready(box, CLOCK_NEVER, -1, &err), 0);
    check_works(box);
}

CONTRACT(what_was_cancelled_can_be_freed_and_leaves_nothing)
{
    const int before = count_descriptors();
    struct sandbox *box = begin();
    AUTO(fd_close) int cancel = cancelled();

    (void)sandbox_ready(box, CLOCK_NEVER, cancel, &err);
    sandbox_free(box);
    fd_close(fd_steal(&cancel));
    CHECK_EQ(count_descriptors(), before);
    CHECK_EQ(waitpid(-1, NULL, __WALL), -1);
    CHECK_EQ(errno, ECHILD);
}
