/* events.c - several programs in one sandbox, and the events of their exit. */
#include "base/fd.h"
#include "harness.h"
#include "place.h"
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

CONTRACT(two_programs_run_side_by_side_in_one_sandbox)
{
    const char *const argv[] = { "cat", NULL };
    struct process_spec spec = plain_process(argv);
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();

    spec.has_stdin = true;
    struct process first = start(box, &spec);
    struct process second = start(box, &spec);
    CHECK(first.id != second.id);
    CHECK_EQ(fd_write_all(second.stdin_fd, "two", 3), 0);
    CHECK_EQ(fd_write_all(first.stdin_fd, "one", 3), 0);
    fd_close(fd_steal(&second.stdin_fd));
    AUTO(outcome_finish) struct outcome two = finish(box, &second);
    fd_close(fd_steal(&first.stdin_fd));
    AUTO(outcome_finish) struct outcome one = finish(box, &first);
    CHECK_STR(one.out.data, "one");
    CHECK_STR(two.out.data, "two");
}

CONTRACT(a_later_program_sees_the_files_of_an_earlier_one)
{
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    AUTO(outcome_finish) struct outcome one = run_shell(box, "echo kept >file");
    AUTO(outcome_finish) struct outcome two = run_shell(box, "cat file");

    CHECK_STR(two.out.data, "kept\n");
}

CONTRACT(two_sandboxes_do_not_share_a_workspace)
{
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    AUTO(sandbox_free) struct sandbox *other = make_sandbox();
    AUTO(outcome_finish) struct outcome one = run_shell(box, "echo mine >file");
    AUTO(outcome_finish) struct outcome two = run_shell(other, "ls -A");

    CHECK_EQ(one.status, 0);
    CHECK_STR(two.out.data, "");
}

CONTRACT(the_event_descriptor_is_readable_exactly_when_an_event_is_there)
{
    const char *const argv[] = { "cat", NULL };
    struct process_spec spec = plain_process(argv);
    struct sandbox_event event;
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();

    CHECK(!is_readable(box->event_fd));
    CHECK_EQ(sandbox_next_event(box, &event, &err), 0);
    CHECK_EQ(event.kind, EVENT_NONE);
    spec.has_stdin = true;
    AUTO(process_close) struct process process = start(box, &spec);
    CHECK(!is_readable(box->event_fd));
    fd_close(fd_steal(&process.stdin_fd));
    event = await_event(box);
    CHECK_EQ(event.kind, EVENT_EXITED);
    CHECK_EQ(event.process, process.id);
    CHECK(!is_readable(box->event_fd));
    CHECK_EQ(sandbox_next_event(box, &event, &err), 0);
    CHECK_EQ(event.kind, EVENT_NONE);
}

/* An answer and an event may cross: the event must not be lost. */
CONTRACT(an_event_stays_visible_while_other_calls_are_made)
{
    const char *const argv[] = { "cat", NULL };
    struct process_spec spec = plain_process(argv);
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    AUTO(process_close) struct process first = start_shell(box, "exit 3");
    struct pollfd ended = { .fd = box->event_fd, .events = POLLIN };

    CHECK_EQ(poll(&ended, 1, 20000), 1);
    spec.has_stdin = true;
    AUTO(process_close) struct process second = start(box, &spec);
    CHECK_EQ(sandbox_signal(box, second.id, SIGCONT, &err), 0);
    CHECK(is_readable(box->event_fd));
    const struct sandbox_event event = await_event(box);
    CHECK_EQ(event.process, first.id);
    CHECK_EQ(WEXITSTATUS(event.wait_status), 3);
    CHECK(!is_readable(box->event_fd));
}

/* More than any socket holds. */
CONTRACT(a_caller_that_reads_no_events_for_long_loses_none)
{
    enum { COUNT = 400 };
    static bool is_seen[COUNT + 1];
    const char *const argv[] = { "true", NULL };
    const struct process_spec spec = plain_process(argv);
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    uint32_t first_id = 0;

    for (uint32_t i = 0; i < COUNT; i++) {
        AUTO(process_close) struct process process = start(box, &spec);
        AUTO(buf_finish) struct buf end = BUF_INIT(64);
        first_id = i == 0 ? process.id : first_id;
        CHECK_EQ(process.id, first_id + i);
        read_to_end(process.stdout_fd, &end); /* so that no more than one runs at a time */
    }
    for (size_t i = 0; i < COUNT; i++) {
        const struct sandbox_event event = await_event(box);
        CHECK_EQ(event.kind, EVENT_EXITED);
        CHECK_EQ(event.wait_status, 0);
        CHECK(event.process >= first_id && event.process < first_id + COUNT);
        CHECK(!is_seen[event.process - first_id]);
        is_seen[event.process - first_id] = true;
    }
    CHECK(!is_readable(box->event_fd));
}
