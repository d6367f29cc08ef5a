/* stop.c - signals, the end of a sandbox, and its final usage. */
#include "base/clock.h"
#include "harness.h"
#include "place.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

CONTRACT(a_signal_reaches_the_program_and_its_group)
{
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    struct process process = start_shell(box, "sleep 1000 & echo ready; wait");
    AUTO(buf_finish) struct buf ready = BUF_INIT(4096);

    read_until(process.stdout_fd, &ready, "ready");
    CHECK_EQ(sandbox_signal(box, process.id, SIGTERM, &err), 0);
    /* The end of the stream means that the sleeping child has exited too: it held it open. */
    AUTO(outcome_finish) struct outcome got = finish(box, &process);
    CHECK(WIFSIGNALED(got.status));
    CHECK_EQ(WTERMSIG(got.status), SIGTERM);
}

/* The leader dies of the first signal; the others of its group ignore it. */
CONTRACT(what_is_left_of_a_group_is_killed_after_its_grace)
{
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    struct process process = start_shell(box,
            "(trap '' TERM; setsid sleep 1000 >/dev/null 2>&1 & while :; do sleep 1; done) &"
            "(trap '' TERM; while :; do sleep 1; done) & sleep 0.1; echo ready;"
            "trap - TERM; sleep 1000");
    AUTO(buf_finish) struct buf ready = BUF_INIT(4096);

    read_until(process.stdout_fd, &ready, "ready");
    int r = sandbox_terminate(box, process.id, 100, &err);
    if (r == -ENOTSUP) {
        process_close(process);
        return;
    }
    CHECK_EQ(r, 0);
    AUTO(outcome_finish)
    struct outcome got = finish(box, &process); /* the end of its streams */
    CHECK(WIFSIGNALED(got.status));
    CHECK_EQ(WTERMSIG(got.status), SIGTERM);
    CHECK_EQ(sandbox_terminate(box, process.id, 0, &err), 0);
    AUTO(outcome_finish) struct outcome after = run_shell(box, "echo fine");
    CHECK_STR(after.out.data, "fine\n");
}

CONTRACT(a_program_can_catch_a_signal)
{
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    struct process process = start_shell(box,
            "trap 'echo caught; exit 5' TERM; sleep 1000 >/dev/null 2>&1 & echo ready; wait");
    AUTO(buf_finish) struct buf ready = BUF_INIT(4096);

    read_until(process.stdout_fd, &ready, "ready");
    CHECK_EQ(sandbox_signal(box, process.id, SIGTERM, &err), 0);
    AUTO(outcome_finish) struct outcome got = finish(box, &process);
    CHECK(WIFEXITED(got.status));
    CHECK_EQ(WEXITSTATUS(got.status), 5);
    CHECK_STR(got.out.data, "caught\n");
}

CONTRACT(a_signal_to_a_program_that_has_ended_is_no_error)
{
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    AUTO(process_close) struct process process = start_shell(box, "exit 0");
    const struct sandbox_event event = await_event(box);

    CHECK_EQ(event.process, process.id);
    CHECK_EQ(sandbox_signal(box, process.id, SIGTERM, &err), 0);
    CHECK_EQ(sandbox_signal(box, process.id, 0, &err), -EINVAL);
    CHECK_EQ(sandbox_signal(box, process.id, 9999, &err), -EINVAL);
    AUTO(outcome_finish) struct outcome after = run_shell(box, "echo fine");
    CHECK_STR(after.out.data, "fine\n");
}

/* Own sessions, lost parents, ignored signals, open pipes: none of them may help. */
CONTRACT(stop_ends_what_has_detached_itself)
{
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    AUTO(process_close)
    struct process process = start_shell(box,
            "trap '' TERM HUP INT QUIT;"
            "for i in 1 2 3; do"
            "  (setsid sh -c '(setsid sleep 1000 &); sleep 1000 & echo detached; wait' &);"
            "done;"
            "exit 0");
    AUTO(buf_finish) struct buf out = BUF_INIT(4096);
    struct sandbox_usage usage;

    read_until(process.stdout_fd, &out, "detached\ndetached\ndetached\n");
    const struct sandbox_event event = await_event(box);
    CHECK_EQ(event.process, process.id);
    CHECK(!is_readable(process.stdout_fd));

    const uint64_t before = clock_ns();
    CHECK_EQ(sandbox_stop(box, &usage, &err), 0);
    CHECK(clock_ns() - before < UINT64_C(5) * 1000000000);
    CHECK(is_readable(process.stdout_fd)); /* its end: every holder has exited */
    read_to_end(process.stdout_fd, &out);
    read_to_end(process.stderr_fd, &out);
}

/*
 * Each process of a chain forks the next and exits, in a session of its own. The chain is long
 * but finite: a runtime that fails here must not break the machine.
 */
CONTRACT(stop_ends_what_keeps_forking_and_ending)
{
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    AUTO(process_close)
    struct process process = start_shell(box,
            "printf '#!/bin/sh\\n[ $1 -gt 0 ] && setsid \"$0\" $(($1 - 1)) &\\n' >link &&"
            "chmod 755 link && for i in 1 2 3 4; do ./link 2000; done; echo running");
    AUTO(buf_finish) struct buf out = BUF_INIT(4096);
    struct sandbox_usage usage;

    read_until(process.stdout_fd, &out, "running");
    const uint64_t before = clock_ns();
    CHECK_EQ(sandbox_stop(box, &usage, &err), 0);
    CHECK(clock_ns() - before < UINT64_C(5) * 1000000000);
    CHECK(is_readable(process.stdout_fd));
    read_to_end(process.stdout_fd, &out);
}

CONTRACT(stop_ends_a_program_that_was_stopped_by_a_signal)
{
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    AUTO(process_close) struct process process = start_shell(box, "echo ready; kill -STOP $$");
    AUTO(buf_finish) struct buf out = BUF_INIT(4096);
    struct sandbox_usage usage;

    read_until(process.stdout_fd, &out, "ready");
    CHECK_EQ(sandbox_stop(box, &usage, &err), 0);
    read_to_end(process.stdout_fd, &out);
}

CONTRACT(after_the_end_nothing_runs_or_starts_and_stop_waits_for_the_rest)
{
    const char *const argv[] = { "true", NULL };
    struct sandbox_usage usage = { 0 };
    struct sandbox_event event;
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    AUTO(process_close)
    struct process process =
            start_shell(box, "trap '' TERM HUP; (setsid sleep 1000 &); echo last; sleep 1000");
    AUTO(buf_finish) struct buf out = BUF_INIT(4096);

    read_until(process.stdout_fd, &out, "last");
    CHECK_EQ(sandbox_end(box, &usage, &err), 0);
    CHECK(usage.cpu_ms != USAGE_UNKNOWN);
    CHECK(is_readable(process.stdout_fd)); /* its end: every holder has exited */
    read_to_end(process.stdout_fd, &out);
    CHECK_EQ(try_start(box, argv, NULL), -ESHUTDOWN);
    CHECK_EQ(sandbox_signal(box, process.id, SIGTERM, &err), -ESHUTDOWN);
    CHECK_EQ(sandbox_next_event(box, &event, &err), 0);
    CHECK_EQ(event.kind, EVENT_NONE);
    CHECK_EQ(sandbox_stop(box, NULL, &err), 0);
    CHECK_EQ(sandbox_end(box, &usage, &err), 0);
    CHECK_EQ(usage.cpu_ms, USAGE_UNKNOWN);
}

/* It may exit in the moment in which the caller stops it. */
CONTRACT(the_figures_of_a_sandbox_that_has_just_ended_by_itself_are_known)
{
    const char *const argv[] = { "sh", "-c",
        "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done", NULL };
    struct process_spec spec = plain_process(argv);
    struct sandbox_usage usage = { 0 };
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();

    spec.ends_sandbox = true;
    AUTO(process_close) struct process process = start(box, &spec);
    AUTO(buf_finish) struct buf out = BUF_INIT(4096);
    struct pollfd hangup = { .fd = box->event_fd };
    read_to_end(process.stdout_fd, &out);
    (void)poll(&hangup, 1, 500); /* a runtime may leave the end to its caller */
    CHECK_EQ(sandbox_end(box, &usage, &err), 0);
    CHECK(usage.cpu_ms >= 10 && usage.cpu_ms < 60000);
}

CONTRACT(a_second_stop_does_nothing_and_nothing_starts_afterwards)
{
    const char *const argv[] = { "true", NULL };
    struct sandbox_usage usage;
    struct sandbox_event event;
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    AUTO(process_close) struct process process = start_shell(box, "exit 0");

    CHECK_EQ(sandbox_stop(box, &usage, &err), 0);
    usage = (struct sandbox_usage){ 0 };
    CHECK_EQ(sandbox_stop(box, &usage, &err), 0);
    CHECK_EQ(usage.cpu_ms, USAGE_UNKNOWN);
    CHECK_EQ(usage.peak_memory_bytes, USAGE_UNKNOWN);
    CHECK_EQ(try_start(box, argv, NULL), -ESHUTDOWN);
    CHECK(strstr(err.message, runtime_name(subject)));
    CHECK_EQ(sandbox_signal(box, process.id, SIGTERM, &err), -ESHUTDOWN);
    CHECK_EQ(sandbox_next_event(box, &event, &err), 0);
    CHECK_EQ(event.kind, EVENT_NONE);
}

CONTRACT(free_ends_what_still_runs)
{
    struct sandbox *box = make_sandbox();
    AUTO(process_close)
    struct process process = start_shell(box, "(setsid sleep 1000 &); echo ready; sleep 1000");
    AUTO(buf_finish) struct buf out = BUF_INIT(4096);

    read_until(process.stdout_fd, &out, "ready");
    sandbox_free(box);
    CHECK(is_readable(process.stdout_fd));
    read_to_end(process.stdout_fd, &out);
}

CONTRACT(the_figures_of_a_busy_program_are_plausible)
{
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    AUTO(outcome_finish)
    struct outcome got = run_shell(box, "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done");
    struct sandbox_usage usage;

    CHECK_EQ(got.status, 0);
    CHECK_EQ(sandbox_stop(box, &usage, &err), 0);
    CHECK(usage.cpu_ms >= 10 && usage.cpu_ms < 60000);
    CHECK(usage.peak_memory_bytes == USAGE_UNKNOWN ||
            (usage.peak_memory_bytes > 100000 && usage.peak_memory_bytes < (1U << 30)));
    CHECK(!usage.is_disk_full);
}

/* A runtime may start as a copy of its caller, however large that is. */
CONTRACT(the_memory_of_the_caller_is_not_the_programs)
{
    const size_t size = 100U << 20;
    void *large = mmap(NULL, size, PROT_READ | PROT_WRITE,
            MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    struct sandbox_usage usage;

    CHECK(large != MAP_FAILED);
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    AUTO(outcome_finish) struct outcome got = run_shell(box, "exit 0");
    CHECK_EQ(sandbox_stop(box, &usage, &err), 0);
    CHECK(usage.peak_memory_bytes == USAGE_UNKNOWN || usage.peak_memory_bytes < size);
}
