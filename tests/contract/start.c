/* start.c - starting programs: streams, arguments, directories, and failures. */
#include "base/fd.h"
#include "harness.h"
#include "place.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

CONTRACT(the_exit_status_comes_back)
{
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    AUTO(outcome_finish) struct outcome zero = run_shell(box, "exit 0");
    AUTO(outcome_finish) struct outcome seven = run_shell(box, "exit 7");

    CHECK_EQ(zero.status, 0);
    CHECK(WIFEXITED(seven.status));
    CHECK_EQ(WEXITSTATUS(seven.status), 7);
}

CONTRACT(the_signal_that_ended_a_program_comes_back)
{
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    AUTO(outcome_finish) struct outcome term = run_shell(box, "kill -TERM $$; exit 1");
    AUTO(outcome_finish) struct outcome kill_ = run_shell(box, "kill -KILL $$; exit 1");

    CHECK(WIFSIGNALED(term.status));
    CHECK_EQ(WTERMSIG(term.status), SIGTERM);
    CHECK(WIFSIGNALED(kill_.status));
    CHECK_EQ(WTERMSIG(kill_.status), SIGKILL);
}

CONTRACT(output_and_errors_are_separate_streams)
{
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    AUTO(outcome_finish) struct outcome got = run_shell(box, "echo out; echo err >&2");

    CHECK_STR(got.out.data, "out\n");
    CHECK_STR(got.err.data, "err\n");
}

CONTRACT(ten_megabytes_of_output_come_whole)
{
    static const char pattern[] = "0123456789\n";
    const size_t size = 10U << 20;
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    AUTO(outcome_finish)
    struct outcome got = run_shell(box, "yes 0123456789 | head -c 10485760");

    CHECK_EQ(got.status, 0);
    CHECK_EQ(got.out.len, size);
    for (size_t i = 0; i < size; i++)
        if (got.out.data[i] != pattern[i % (sizeof(pattern) - 1)])
            test_fail(__FILE__, __LINE__, "byte %zu is not what was written", i);
}

CONTRACT(input_reaches_the_program_and_so_does_its_end)
{
    const char *const argv[] = { "cat", NULL };
    struct process_spec spec = plain_process(argv);
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();

    spec.has_stdin = true;
    struct process process = start(box, &spec);
    CHECK(process.stdin_fd >= 0);
    CHECK_EQ(fd_write_all(process.stdin_fd, "hello", 5), 0);
    fd_close(fd_steal(&process.stdin_fd));
    AUTO(outcome_finish) struct outcome got = finish(box, &process);
    CHECK_EQ(got.status, 0);
    CHECK_STR(got.out.data, "hello");
}

CONTRACT(without_input_the_program_reads_its_end_at_once)
{
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    struct process process = start_shell(box, "cat; echo end");

    CHECK_EQ(process.stdin_fd, -1);
    AUTO(outcome_finish) struct outcome got = finish(box, &process);
    CHECK_STR(got.out.data, "end\n");
}

CONTRACT(the_environment_is_what_was_given_and_nothing_else)
{
    const char *const argv[] = { "env", NULL };
    const char *const env[] = { "B=2", "PATH=/usr/bin:/bin", "A=1 = one", "EMPTY=", NULL };
    struct process_spec spec = plain_process(argv);
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();

    CHECK_EQ(setenv("SECRET", "of the caller", 1), 0);
    spec.env = env;
    struct process process = start(box, &spec);
    AUTO(outcome_finish) struct outcome got = finish(box, &process);
    CHECK_STR(got.out.data, "B=2\nPATH=/usr/bin:/bin\nA=1 = one\nEMPTY=\n");
}

CONTRACT(arguments_arrive_byte_for_byte)
{
    const char *const argv[] = { "printf", "[%s]", "", "a b", "$HOME", "\xff\n", "*", NULL };
    const struct process_spec spec = plain_process(argv);
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    struct process process = start(box, &spec);
    AUTO(outcome_finish) struct outcome got = finish(box, &process);

    CHECK_STR(got.out.data, "[][a b][$HOME][\xff\n][*]");
}

CONTRACT(a_hundred_kilobytes_of_arguments_arrive)
{
    static char long_argument[100001];
    const char *const argv[] = { "printf", "%s", long_argument, NULL };
    const struct process_spec spec = plain_process(argv);
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();

    memset(long_argument, 'x', sizeof(long_argument) - 1);
    struct process process = start(box, &spec);
    AUTO(outcome_finish) struct outcome got = finish(box, &process);
    CHECK_EQ(got.out.len, sizeof(long_argument) - 1);
}

CONTRACT(a_program_starts_in_the_workspace_which_is_empty_and_writable)
{
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    AUTO(outcome_finish) struct outcome where = run_shell(box, "pwd -P");
    AUTO(outcome_finish)
    struct outcome what = run_shell(box, "ls -A; echo x >file && cat file");
    char expected[4096];

    (void)snprintf(expected, sizeof(expected), "%s\n", box->workspace);
    CHECK_STR(where.out.data, expected);
    CHECK_STR(what.out.data, "x\n");
}

CONTRACT(the_home_directory_is_there_and_writable)
{
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    const char *const argv[] = { "sh", "-c", "echo x >file && cat file", NULL };
    struct process_spec spec = plain_process(argv);

    CHECK(box->user_name && box->user_name[0]);
    spec.cwd = box->home;
    struct process process = start(box, &spec);
    AUTO(outcome_finish) struct outcome got = finish(box, &process);
    CHECK_STR(got.out.data, "x\n");
}

CONTRACT(a_program_starts_in_the_directory_that_was_asked_for)
{
    const char *const argv[] = { "pwd", "-P", NULL };
    struct process_spec spec = plain_process(argv);
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();

    spec.cwd = "/usr";
    struct process process = start(box, &spec);
    AUTO(outcome_finish) struct outcome got = finish(box, &process);
    CHECK_STR(got.out.data, "/usr\n");
}

CONTRACT(a_working_directory_that_is_none_is_told_apart)
{
    const char *const argv[] = { "true", NULL };
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();

    CHECK_EQ(try_start(box, argv, "/no/such/directory"), -ENOTDIR);
    CHECK(strstr(err.message, "/no/such/directory"));
    CHECK_EQ(try_start(box, argv, "/usr/bin/env"), -ENOTDIR);
    CHECK_EQ(try_start(box, argv, "relative"), -EINVAL);
    AUTO(outcome_finish) struct outcome shut = run_shell(box, "mkdir shut && chmod 0 shut");
    char path[4200];
    (void)snprintf(path, sizeof(path), "%s/shut", box->workspace);
    int r = try_start(box, argv, path); /* some users may enter it anyway */
    CHECK(r == 0 || r == -ENOTDIR);
}

CONTRACT(a_program_that_is_not_there_is_told_apart)
{
    const char *const by_name[] = { "no-such-program", NULL };
    const char *const by_path[] = { "/no/such/program", NULL };
    const char *const below_a_file[] = { "/usr/bin/env/program", NULL };
    const char *const empty[] = { "", NULL };
    const char *const none[] = { NULL };
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();

    CHECK_EQ(try_start(box, by_name, NULL), -ENOENT);
    CHECK(strstr(err.message, "'no-such-program'"));
    CHECK_EQ(try_start(box, by_path, NULL), -ENOENT);
    CHECK_EQ(try_start(box, below_a_file, NULL), -ENOENT);
    CHECK_EQ(try_start(box, empty, NULL), -ENOENT);
    CHECK_EQ(try_start(box, none, NULL), -EINVAL);

    CHECK(!is_readable(box->event_fd)); /* a failed start has no exit event */
    AUTO(outcome_finish) struct outcome after = run_shell(box, "echo fine");
    CHECK_STR(after.out.data, "fine\n");
}

CONTRACT(a_program_that_cannot_be_executed_is_told_apart)
{
    const char *const plain[] = { "./plain", NULL };
    const char *const directory[] = { "/usr", NULL };
    const char *const junk[] = { "./junk", NULL };
    const char *const orphan[] = { "./orphan", NULL };
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    AUTO(outcome_finish)
    struct outcome made = run_shell(box,
            "echo >plain; echo not a program >junk; echo '#!/no/such/interpreter' >orphan;"
            "chmod 755 junk orphan");

    CHECK_EQ(made.status, 0);
    CHECK_EQ(try_start(box, plain, NULL), -EACCES);
    CHECK_EQ(try_start(box, directory, NULL), -EACCES);
    CHECK_EQ(try_start(box, junk, NULL), -ENOEXEC);
    CHECK_EQ(try_start(box, orphan, NULL), -ENOEXEC);
    CHECK(strstr(err.message, "interpreter"));
    CHECK(!is_readable(box->event_fd));
}

CONTRACT(the_path_of_the_given_environment_is_searched)
{
    const char *const argv[] = { "tool", NULL };
    struct process_spec spec = plain_process(argv);
    AUTO(process_close) struct process none = PROCESS_INIT;
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    AUTO(outcome_finish)
    struct outcome made = run_shell(box,
            "mkdir first second && echo >first/tool && chmod 644 first/tool &&"
            "printf '#!/bin/sh\\necho second\\n' >second/tool && chmod 755 second/tool");
    char path[10000];
    const char *const env[] = { path, NULL };

    CHECK_EQ(made.status, 0);
    (void)snprintf(path, sizeof(path), "PATH=/no/such:%s/first::%s/second", box->workspace,
            box->workspace);
    spec.env = env;
    struct process process = start(box, &spec);
    AUTO(outcome_finish) struct outcome got = finish(box, &process);
    CHECK_STR(got.out.data, "second\n");

    (void)snprintf(path, sizeof(path), "PATH=%s/first", box->workspace);
    CHECK_EQ(sandbox_start(box, &spec, &none, &err), -EACCES);
    (void)snprintf(path, sizeof(path), "PATH=");
    CHECK_EQ(sandbox_start(box, &spec, &none, &err), -ENOENT);
}

CONTRACT(a_sandbox_can_be_freed_after_a_start_that_failed)
{
    const char *const argv[] = { "/no/such/program", NULL };
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();

    CHECK_EQ(try_start(box, argv, NULL), -ENOENT);
}
