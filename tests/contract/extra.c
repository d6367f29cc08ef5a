/* extra.c - streams beside standard input, output and error. */
#include "base/fd.h"
#include "harness.h"
#include "place.h"
#include <errno.h>
#include <poll.h>
#include <sys/wait.h>

static struct process start_with(struct sandbox *box, unsigned n_extra, const char *line)
{
    const char *const argv[] = { "sh", "-c", line, NULL };
    struct process_spec spec = plain_process(argv);

    spec.n_extra = n_extra;
    return start(box, &spec);
}

CONTRACT(a_program_reads_descriptor_3_and_writes_descriptor_4)
{
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    struct process process =
            start_with(box, 2, "cat <&3 >&4; exec 4>&-; echo out; echo err >&2; exit 7");
    AUTO(buf_finish) struct buf report = BUF_INIT(65536);

    CHECK_EQ(fd_write_all(process.extra_fds[0], "to and fro", 10), 0);
    fd_close(fd_steal(&process.extra_fds[0]));
    read_to_end(process.extra_fds[1], &report);
    CHECK_STR(report.data, "to and fro");
    AUTO(outcome_finish) struct outcome outcome = finish(box, &process);
    CHECK_STR(outcome.out.data, "out\n");
    CHECK_STR(outcome.err.data, "err\n");
    CHECK_EQ(WEXITSTATUS(outcome.status), 7);
}

/* More than any pipe holds, both ways at once. */
CONTRACT(they_are_as_independent_as_the_other_streams)
{
    enum { MUCH = 1 << 20 };
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    AUTO(process_close)
    struct process process =
            start_with(box, 2, "head -c 1048576 /dev/zero >&4; exec 4>&-; wc -c <&3");
    AUTO(buf_finish) struct buf report = BUF_INIT(2 * MUCH);
    AUTO(buf_finish) struct buf out = BUF_INIT(4096);
    static char task[MUCH];

    read_to_end(process.extra_fds[1], &report); /* nothing is in fd 3 yet, and it is open */
    CHECK_EQ(report.len, MUCH);
    CHECK_EQ(fd_write_all(process.extra_fds[0], task, sizeof(task)), 0);
    fd_close(fd_steal(&process.extra_fds[0]));
    read_until(process.stdout_fd, &out, "1048576\n");
}

CONTRACT(one_is_the_task_alone_and_none_is_none)
{
    static const char list[] = "for i in 3 4 5; do test -e /proc/self/fd/$i && echo $i; done";
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    struct process one = start_with(box, 1, "cat <&3; test -e /proc/$$/fd/4 || echo alone");

    CHECK(one.extra_fds[0] >= 0);
    CHECK_EQ(one.extra_fds[1], -1);
    CHECK_EQ(fd_write_all(one.extra_fds[0], "task ", 5), 0);
    fd_close(fd_steal(&one.extra_fds[0]));
    AUTO(outcome_finish) struct outcome outcome = finish(box, &one);
    CHECK_STR(outcome.out.data, "task alone\n");

    struct process none = start_with(box, 0, list);
    CHECK_EQ(none.extra_fds[0], -1);
    CHECK_EQ(none.extra_fds[1], -1);
    AUTO(outcome_finish) struct outcome nothing = finish(box, &none);
    CHECK_STR(nothing.out.data, "");
}

CONTRACT(a_program_on_a_terminal_can_have_them)
{
    const char *const argv[] = { "sh", "-c", "test -t 0 && cat <&3 >&4", NULL };
    struct process_spec spec = plain_process(argv);
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    AUTO(buf_finish) struct buf report = BUF_INIT(65536);

    spec.has_tty = true;
    spec.n_extra = 2;
    AUTO(process_close) struct process process = start(box, &spec);
    CHECK_EQ(fd_write_all(process.extra_fds[0], "not typed", 9), 0);
    fd_close(fd_steal(&process.extra_fds[0]));
    read_to_end(process.extra_fds[1], &report);
    CHECK_STR(report.data, "not typed");
    CHECK_EQ(await_event(box).wait_status, 0);
}

CONTRACT(they_end_with_the_sandbox)
{
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    AUTO(process_close)
    struct process process = start_with(box, 2, "echo begun >&4; exec sleep 1000");
    AUTO(buf_finish) struct buf report = BUF_INIT(65536);

    read_until(process.extra_fds[1], &report, "begun\n");
    CHECK_EQ(sandbox_stop(box, NULL, &err), 0);
    read_to_end(process.extra_fds[1], &report);
    CHECK_STR(report.data, "begun\n");
    struct pollfd closed = { .fd = process.extra_fds[0] };
    CHECK_EQ(poll(&closed, 1, 0), 1);
    CHECK_EQ(closed.revents & POLLERR, POLLERR); /* nothing reads it any more */
}

CONTRACT(more_than_two_are_refused)
{
    const char *const argv[] = { "true", NULL };
    struct process_spec spec = plain_process(argv);
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    struct process process = PROCESS_INIT;
    const int before = count_descriptors();

    spec.n_extra = 3;
    CHECK_EQ(sandbox_start(box, &spec, &process, &err), -EINVAL);
    CHECK(strstr(err.message, "at most 2"));
    CHECK_EQ(count_descriptors(), before);
}
