/* terminal.c - programs on a terminal. */
#include "base/fd.h"
#include "harness.h"
#include "place.h"
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

static struct process start_on_terminal(struct sandbox *box, const char *line)
{
    const char *const argv[] = { "sh", "-c", line, NULL };
    struct process_spec spec = plain_process(argv);

    spec.has_tty = true;
    spec.rows = 33;
    spec.cols = 101;
    struct process process = start(box, &spec);
    CHECK(process.stdin_fd >= 0);
    CHECK(process.stdout_fd >= 0);
    CHECK(process.stdin_fd != process.stdout_fd);
    CHECK_EQ(process.stderr_fd, -1);
    return process;
}

CONTRACT(a_terminal_is_one_and_has_the_size_that_was_asked_for)
{
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    AUTO(process_close)
    struct process process = start_on_terminal(
            box, "test -t 0 && test -t 1 && test -t 2 && stty size && echo mine >/dev/tty");
    AUTO(buf_finish) struct buf out = BUF_INIT(65536);

    read_to_end(process.stdout_fd, &out);
    CHECK_STR(out.data, "33 101\r\nmine\r\n");
    CHECK_EQ(await_event(box).wait_status, 0);
}

CONTRACT(a_new_size_of_the_terminal_is_seen_inside)
{
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    AUTO(process_close)
    struct process process =
            start_on_terminal(box, "stty -echo; echo ready; read -r line; stty size");
    AUTO(buf_finish) struct buf out = BUF_INIT(65536);

    read_until(process.stdout_fd, &out, "ready\r\n");
    CHECK_EQ(sandbox_resize(box, &process, 44, 55, &err), 0);
    CHECK_EQ(fd_write_all(process.stdin_fd, "go\n", 3), 0);
    read_to_end(process.stdout_fd, &out);
    CHECK_STR(out.data, "ready\r\n44 55\r\n");
}

CONTRACT(what_is_not_on_a_terminal_has_no_size)
{
    const char *const argv[] = { "cat", NULL };
    struct process_spec spec = plain_process(argv);
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();

    AUTO(process_close) struct process deaf = start(box, &spec);
    CHECK_EQ(sandbox_resize(box, &deaf, 44, 55, &err), -ENOTTY);
    spec.has_stdin = true;
    AUTO(process_close) struct process piped = start(box, &spec);
    CHECK_EQ(sandbox_resize(box, &piped, 44, 55, &err), -ENOTTY);
    CHECK(strstr(err.message, "no terminal"));
    CHECK_EQ(sandbox_stop(box, NULL, &err), 0);
    CHECK_EQ(sandbox_resize(box, &piped, 44, 55, &err), -ESHUTDOWN);
}

CONTRACT(an_interrupt_typed_at_the_terminal_ends_the_program)
{
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    AUTO(process_close)
    struct process process = start_on_terminal(box, "echo ready; exec cat");
    AUTO(buf_finish) struct buf out = BUF_INIT(65536);

    read_until(process.stdout_fd, &out, "ready");
    CHECK_EQ(fd_write_all(process.stdin_fd, "\x03", 1), 0);
    const struct sandbox_event event = await_event(box);
    CHECK(WIFSIGNALED(event.wait_status));
    CHECK_EQ(WTERMSIG(event.wait_status), SIGINT);
}
