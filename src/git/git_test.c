#include "base/clock.h"
#include "base/err.h"
#include "git/git.h"
#include "workspace/git_fixture.h"
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

static struct carrel_error err;
static char git_dir[128];

static struct fixture open_repository(void)
{
    struct fixture at = fixture_open();

    SHELL("git init -q repo; cd repo; echo one > file; git add .; git commit -q -m first");
    (void)snprintf(git_dir, sizeof(git_dir), "%s/repo/.git", at.path);
    return at;
}

static struct git scrubbed(void)
{
    return (struct git){ .git_dir = git_dir, .trust = GIT_SCRUBBED };
}

/* Puts a program called `git` (a script) in front of the PATH. */
static void fake_git(const struct fixture *at, const char *script)
{
    char path[256];

    SHELL("mkdir bin");
    FILE *file = fopen("bin/git", "we");
    CHECK(file);
    CHECK(fprintf(file, "#!/bin/sh\n%s\n", script) > 0);
    CHECK_EQ(fclose(file), 0);
    CHECK_EQ(chmod("bin/git", 0700), 0);
    (void)snprintf(path, sizeof(path), "%s/bin:/usr/bin:/bin", at->path);
    CHECK_EQ(setenv("PATH", path, 1), 0);
}

static int run_fake(struct git_io *io)
{
    const struct git git = { .git_dir = git_dir, .trust = GIT_AS_USER };

    return git_run(&git, GIT_ARGS("fake"), io, &err);
}

/* What the script prints, and how it ends. */
static int print_fake(const struct fixture *at, const char *script, struct buf *output)
{
    struct git_io io = GIT_IO_INIT;

    io.output = output;
    fake_git(at, script);
    return run_fake(&io);
}

TEST(output_comes_back_without_its_last_newline)
{
    AUTO(fixture_close) struct fixture at = open_repository();
    AUTO(buf_finish) struct buf output = BUF_INIT(100);
    struct git git = scrubbed();
    struct git_io io = GIT_IO_INIT;

    io.output = &output;
    CHECK_EQ(git_expect(&git, GIT_ARGS("log", "--format=%s"), &io, &err), 0);
    CHECK_STR(output.data, "first");
}

TEST(a_status_that_is_not_zero_comes_with_the_words_of_git)
{
    AUTO(fixture_close) struct fixture at = open_repository();
    struct git git = scrubbed();

    CHECK_EQ(git_run(&git, GIT_ARGS("cat-file", "-t", "nonsense"), NULL, &err), 128);
    CHECK_STR(err.message, "git cat-file: Not a valid object name nonsense");
    CHECK_EQ(git_expect(&git, GIT_ARGS("cat-file", "-t", "nonsense"), NULL, &err), -EIO);
    CHECK_EQ(git_run(&git, GIT_ARGS("rev-parse", "-q", "--verify", "nonsense"), NULL, &err), 1);
    CHECK_STR(err.message, "git rev-parse ended with status 1");
}

TEST(control_bytes_in_a_complaint_do_not_reach_the_terminal)
{
    AUTO(fixture_close) struct fixture at = open_repository();
    struct git git = scrubbed();

    CHECK_EQ(git_run(&git, GIT_ARGS("cat-file", "-t", "a\033[31mb"), NULL, &err), 128);
    CHECK(!strchr(err.message, '\033'));
}

TEST(the_reason_is_found_among_hints)
{
    AUTO(fixture_close) struct fixture at = open_repository();
    struct git_io io = GIT_IO_INIT;

    fake_git(&at, "echo 'warning: w' >&2; echo 'fatal: the reason' >&2; echo 'hint: h' >&2\n"
                  "exit 9");
    CHECK_EQ(run_fake(&io), 9);
    CHECK_STR(err.message, "git fake: the reason");
}

TEST(of_endless_complaints_the_end_is_kept)
{
    AUTO(fixture_close) struct fixture at = open_repository();
    struct git_io io = GIT_IO_INIT;

    fake_git(&at, "yes complaint | head -c 3000000 >&2; echo >&2; echo last >&2; exit 1");
    CHECK_EQ(run_fake(&io), 1);
    CHECK_STR(err.message, "git fake: last");
}

TEST(much_input_and_much_output_at_once_do_not_wait_for_each_other)
{
    AUTO(fixture_close) struct fixture at = open_repository();
    AUTO(buf_finish) struct buf output = BUF_INIT((size_t)64 << 20);
    struct git_io io = GIT_IO_INIT;
    size_t len = (size_t)20 << 20;
    AUTO(free) char *input = malloc(len);

    CHECK(input);
    for (size_t i = 0; i < len; i++)
        input[i] = (char)(i * 7 + i / 251);
    io.input = input;
    io.input_len = len;
    io.output = &output;
    fake_git(&at, "cat; yes | head -c 1000000 >&2");
    CHECK_EQ(run_fake(&io), 0);
    CHECK_MEM(output.data, output.len, input, len);
}

TEST(a_program_that_does_not_read_its_input_is_no_error_and_no_signal)
{
    AUTO(fixture_close) struct fixture at = open_repository();
    struct git_io io = GIT_IO_INIT;
    AUTO(free) char *input = calloc(1, (size_t)8 << 20);

    io.input = input;
    io.input_len = (size_t)8 << 20;
    fake_git(&at, "exec <&-; exit 3");
    CHECK_EQ(run_fake(&io), 3);
}

struct counter {
    size_t given, taken;
    bool is_source_failing, is_sink_failing;
};

static ssize_t give(void *context, char *data, size_t size, struct carrel_error *e)
{
    struct counter *counter = context;

    if (counter->is_source_failing && counter->given > 0)
        return err_set(e, -ESTALE, "the source dried up");
    if (counter->given >= 3000000)
        return 0;
    memset(data, 'x', size);
    counter->given += size;
    return (ssize_t)size;
}

static int swallow(void *context, const char *data, size_t len, struct carrel_error *e)
{
    struct counter *counter = context;

    for (size_t i = 0; i < len; i++)
        CHECK_EQ(data[i], 'x');
    counter->taken += len;
    return counter->is_sink_failing ? err_set(e, -EBADMSG, "not to my taste") : 0;
}

TEST(a_source_is_asked_until_it_ends_and_a_sink_gets_everything)
{
    AUTO(fixture_close) struct fixture at = open_repository();
    struct counter counter = { 0 };
    struct git_io io = GIT_IO_INIT;

    io.source = give;
    io.sink = swallow;
    io.context = &counter;
    fake_git(&at, "cat");
    CHECK_EQ(run_fake(&io), 0);
    CHECK(counter.given >= 3000000);
    CHECK_EQ(counter.taken, counter.given);
}

TEST(a_source_or_a_sink_that_fails_ends_the_program)
{
    AUTO(fixture_close) struct fixture at = open_repository();
    struct counter counter = { .is_source_failing = true };
    struct git_io io = GIT_IO_INIT;

    io.source = give;
    io.sink = swallow;
    io.context = &counter;
    fake_git(&at, "cat; exec sleep 1000");
    CHECK_EQ(run_fake(&io), -ESTALE);
    CHECK_STR(err.message, "the source dried up");
    counter = (struct counter){ .is_sink_failing = true };
    CHECK_EQ(run_fake(&io), -EBADMSG);
    CHECK_STR(err.message, "not to my taste");
}

TEST(output_over_the_maximum_ends_the_program)
{
    AUTO(fixture_close) struct fixture at = open_repository();
    AUTO(buf_finish) struct buf output = BUF_INIT(1000);

    CHECK_EQ(print_fake(&at, "exec yes", &output), -EFBIG);
    CHECK_STR(err.message, "git fake printed more than 1000 bytes");
}

TEST(a_program_that_takes_too_long_is_ended)
{
    AUTO(fixture_close) struct fixture at = open_repository();
    struct git_io io = GIT_IO_INIT;
    uint64_t start_ns = clock_ns();

    io.timeout_ms = 50;
    fake_git(&at, "exec sleep 1000");
    CHECK_EQ(run_fake(&io), -ETIMEDOUT);
    CHECK_STR(err.message, "git fake took longer than 50 ms and was killed");
    CHECK(clock_ns() - start_ns < UINT64_C(1500000000)); /* the first signal was enough */
}

TEST(a_program_that_holds_out_against_the_first_signal_is_killed)
{
    AUTO(fixture_close) struct fixture at = open_repository();
    struct git_io io = GIT_IO_INIT;

    io.timeout_ms = 50;
    fake_git(&at, "trap '' TERM; while :; do sleep 0.1; done");
    CHECK_EQ(run_fake(&io), -ETIMEDOUT);
}

TEST(a_process_that_is_left_behind_does_not_keep_us_waiting)
{
    AUTO(fixture_close) struct fixture at = open_repository();
    AUTO(buf_finish) struct buf output = BUF_INIT(1000);

    CHECK_EQ(print_fake(&at, "sleep 1000 & echo $!", &output), 0);
    CHECK_EQ(kill(atoi(output.data), SIGKILL), 0);
}

TEST(a_program_that_a_signal_ends_is_told_from_one_that_exits)
{
    AUTO(fixture_close) struct fixture at = open_repository();
    struct git_io io = GIT_IO_INIT;

    fake_git(&at, "kill -9 $$");
    CHECK_EQ(run_fake(&io), -EINTR);
    CHECK_STR(err.message, "git fake was killed by signal 9 (Killed)");
}

TEST(limits_of_memory_and_file_size_hold)
{
    AUTO(fixture_close) struct fixture at = open_repository();
    AUTO(buf_finish) struct buf output = BUF_INIT(1000);
    struct git_io io = GIT_IO_INIT;

    io.output = &output;
    io.max_memory_bytes = (uint64_t)64 << 20;
    io.max_file_bytes = (uint64_t)1 << 20;
    fake_git(&at, "ulimit -d; ulimit -f");
    CHECK_EQ(run_fake(&io), 0);
    CHECK_STR(output.data, "65536\n2048\n");
}

TEST(nothing_of_ours_is_inherited_but_three_streams)
{
    AUTO(fixture_close) struct fixture at = open_repository();
    AUTO(buf_finish) struct buf output = BUF_INIT(1000);

    CHECK(dup(0) > 2); /* without close-on-exec, as a caller's caller may leave it */
    CHECK(signal(SIGUSR1, SIG_IGN) != SIG_ERR);
    CHECK(signal(SIGPIPE, SIG_IGN) != SIG_ERR);
    CHECK_EQ(print_fake(&at,
                     "for n in 0 1 2 3 4 5 6 7 8 9; do test ! -e /proc/$$/fd/$n || echo $n; "
                     "done\n"
                     "grep SigIgn /proc/$$/status",
                     &output),
            0);
    CHECK_STR(output.data, "0\n1\n2\nSigIgn:\t0000000000000000\n");
}

TEST(a_caller_that_ignores_its_children_is_refused_and_left_as_it_is)
{
    AUTO(fixture_close) struct fixture at = open_repository();
    struct git git = scrubbed();
    struct sigaction now;

    CHECK(signal(SIGCHLD, SIG_IGN) != SIG_ERR);
    CHECK_EQ(git_run(&git, GIT_ARGS("rev-parse", "HEAD"), NULL, &err), -EINVAL);
    CHECK_EQ(err.origin, CARREL_FROM_CALLER);
    CHECK_EQ(sigaction(SIGCHLD, NULL, &now), 0);
    CHECK(now.sa_handler == SIG_IGN);
    (void)signal(SIGCHLD, SIG_DFL);
    CHECK_EQ(git_run(&git, GIT_ARGS("rev-parse", "HEAD"), NULL, &err), 0);
}

TEST(a_killed_caller_takes_its_git_with_it)
{
    AUTO(fixture_close) struct fixture at = open_repository();
    struct git_io io = GIT_IO_INIT;
    int ends[2];
    char byte;

    /* The program holds the pipe as its output: end of file means that it has exited. */
    fake_git(&at, "echo; exec sleep 1000");
    CHECK_EQ(pipe(ends), 0);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        (void)close(ends[0]);
        io.output_fd = ends[1];
        _exit(run_fake(&io));
    }
    CHECK_EQ(close(ends[1]), 0);
    CHECK_EQ(read(ends[0], &byte, 1), 1);
    CHECK_EQ(kill(pid, SIGKILL), 0);
    CHECK_EQ(read(ends[0], &byte, 1), 0);
    CHECK_EQ(waitpid(pid, NULL, 0), pid);
}

TEST(it_works_for_a_caller_without_standard_streams)
{
    AUTO(fixture_close) struct fixture at = open_repository();
    AUTO(buf_finish) struct buf output = BUF_INIT(1000);
    struct git git = scrubbed();
    struct git_io io = GIT_IO_INIT;
    const char *expected = printed("printf text | git hash-object --stdin");
    int status;

    io.input = "text";
    io.input_len = 4;
    io.output = &output;
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        (void)close(0);
        (void)close(1);
        (void)close(2);
        int r = git_expect(&git, GIT_ARGS("hash-object", "--stdin"), &io, &err);
        _exit(r == 0 && strcmp(output.data, expected) == 0 ? 0 : 1);
    }
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK_EQ(status, 0);
}

TEST(streams_may_be_descriptors_of_the_caller)
{
    AUTO(fixture_close) struct fixture at = open_repository();
    struct git git = scrubbed();
    struct git_io io = GIT_IO_INIT;

    SHELL("printf text > in");
    AUTO(fd_close) int in = open("in", O_RDONLY | O_CLOEXEC);
    AUTO(fd_close) int out = open("out", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    io.input_fd = in;
    io.output_fd = out;
    CHECK_EQ(git_run(&git, GIT_ARGS("hash-object", "--stdin"), &io, &err), 0);
    SHELL("test \"$(cat out)\" = \"$(git hash-object in)\"");
}

TEST(new_objects_go_where_they_are_told_and_old_ones_are_found)
{
    AUTO(fixture_close) struct fixture at = open_repository();
    AUTO(buf_finish) struct buf output = BUF_INIT(100);
    char objects[128], alternate[192];
    struct git git = scrubbed();
    struct git_io io = GIT_IO_INIT;

    /* A colon and a quote, which are special in the list of directories. */
    SHELL("mkdir quarantine; mv repo 'a:\"b'");
    (void)snprintf(objects, sizeof(objects), "%s/quarantine", at.path);
    (void)snprintf(git_dir, sizeof(git_dir), "%s/a:\"b/.git", at.path);
    (void)snprintf(alternate, sizeof(alternate), "%s/objects", git_dir);
    git.object_dir = objects;
    git.alternate = alternate;
    io.input = "new";
    io.input_len = 3;
    io.output = &output;
    CHECK_EQ(git_expect(&git, GIT_ARGS("hash-object", "-w", "--stdin"), &io, &err), 0);
    SHELL("test -f quarantine/%.2s/%s", output.data, output.data + 2);
    CHECK_EQ(git_run(&git, GIT_ARGS("cat-file", "commit", "HEAD"), NULL, &err), 0);
}

TEST(without_a_work_tree_git_takes_no_directory_for_one)
{
    AUTO(fixture_close) struct fixture at = open_repository();
    AUTO(buf_finish) struct buf output = BUF_INIT(100);
    struct git git = scrubbed();
    struct git_io io = GIT_IO_INIT;
    char top[128];

    io.output = &output;
    CHECK_EQ(git_run(&git, GIT_ARGS("status"), &io, &err), 128);
    buf_clear(&output);
    (void)snprintf(top, sizeof(top), "%s/repo", at.path);
    git.work_tree = top;
    CHECK_EQ(git_expect(&git, GIT_ARGS("status", "--porcelain"), &io, &err), 0);
    CHECK_EQ(output.len, 0);
}

/* Everything in the repository's own configuration that names a program. */
TEST(a_scrubbed_git_starts_no_program_of_any_configuration)
{
    AUTO(fixture_close) struct fixture at = open_repository();
    struct git git = scrubbed();
    struct git_io io = GIT_IO_INIT;
    char top[128];

    SHELL("printf '#!/bin/sh\\ntouch %s/sentinel\\nexit 1\\n' > evil; chmod +x evil", at.path);
    SHELL("cd repo; for key in core.fsmonitor core.sshCommand core.askPass core.editor "
          "core.pager"
          " gpg.program gpg.openpgp.program core.alternateRefsCommand pager.log pager.status"
          " alias.status alias.rev-parse credential.helper gc.recentObjectsHook; do"
          "  git config $key %s/evil; git config --global $key %s/evil; done;"
          " git config alias.log '!%s/evil'; git config log.showSignature true;"
          " git config commit.gpgSign true; git config --global protocol.ext.allow always;"
          " git config protocol.ext.allow always; git config protocol.file.allow always;"
          " git config remote.origin.url 'ext::%s/evil';"
          " for hook in reference-transaction post-index-change pre-commit post-checkout"
          " pre-auto-gc fsmonitor-watchman; do cp ../evil .git/hooks/$hook; done",
            at.path, at.path, at.path, at.path);
    /* The setting works: an ordinary git starts the program. */
    (void)shell("cd repo; git status >/dev/null 2>&1");
    SHELL("test -e sentinel; rm sentinel");

    (void)snprintf(top, sizeof(top), "%s/repo", at.path);
    git.work_tree = top;
    io.timeout_ms = 20000;
    CHECK_EQ(git_run(&git, GIT_ARGS("status"), &io, &err), 0);
    CHECK_EQ(git_run(&git, GIT_ARGS("log", "-1"), &io, &err), 0);
    CHECK_EQ(git_run(&git, GIT_ARGS("update-ref", "refs/heads/x", "HEAD"), &io, &err), 0);
    CHECK_EQ(git_run(&git, GIT_ARGS("commit", "--allow-empty", "-m", "x"), &io, &err), 0);
    CHECK_EQ(git_run(&git, GIT_ARGS("checkout", "-q", "x"), &io, &err), 0);
    CHECK_EQ(git_run(&git, GIT_ARGS("read-tree", "HEAD"), &io, &err), 0);
    CHECK_EQ(git_run(&git, GIT_ARGS("gc", "-q", "--auto"), &io, &err), 0);
    CHECK(git_run(&git, GIT_ARGS("fetch", "origin"), &io, &err) > 0);
    CHECK_STR(err.message, "git fetch: transport 'ext' not allowed");
    CHECK(git_run(&git, GIT_ARGS("fetch", "file:///tmp"), &io, &err) > 0);
    CHECK_STR(err.message, "git fetch: transport 'file' not allowed");
    SHELL("test ! -e sentinel");
}

TEST(replaced_and_grafted_history_is_not_seen)
{
    AUTO(fixture_close) struct fixture at = open_repository();
    AUTO(buf_finish) struct buf output = BUF_INIT(100);
    struct git git = scrubbed();
    struct git_io io = GIT_IO_INIT;

    SHELL("cd repo; git commit -q --allow-empty -m second; git replace HEAD HEAD^");
    SHELL("cd repo; git rev-parse HEAD > .git/info/grafts");
    io.output = &output;
    CHECK_EQ(git_expect(&git, GIT_ARGS("log", "--format=%s"), &io, &err), 0);
    CHECK_STR(output.data, "second\nfirst");
    /* And git prints nothing about it. */
    CHECK_EQ(git_run(&git, GIT_ARGS("merge-base", "--is-ancestor", "HEAD", "HEAD~1"), NULL,
                     &err),
            1);
    CHECK_STR(err.message, "git merge-base ended with status 1");
}

TEST(the_environment_of_the_caller_does_not_name_the_repository)
{
    AUTO(fixture_close) struct fixture at = open_repository();
    AUTO(buf_finish) struct buf output = BUF_INIT(10000);

    CHECK_EQ(setenv("GIT_DIR", "/nonexistent", 1), 0);
    CHECK_EQ(setenv("GIT_INDEX_FILE", "/nonexistent", 1), 0);
    CHECK_EQ(setenv("GIT_CONFIG_COUNT", "1", 1), 0);
    CHECK_EQ(setenv("GIT_TRACE", "1", 1), 0);
    CHECK_EQ(setenv("GIT_LFS_SKIP_SMUDGE", "1", 1), 0);
    CHECK_EQ(setenv("MINE", "1", 1), 0);
    CHECK_EQ(print_fake(&at, "env | grep -v PWD | cut -d= -f1 | sort", &output), 0);
    CHECK_STR(output.data, "GIT_ALLOW_PROTOCOL\nGIT_CONFIG_NOSYSTEM\nGIT_IMPLICIT_WORK_TREE\n"
                           "GIT_LFS_SKIP_SMUDGE\nGIT_NO_LAZY_FETCH\nHOME\nMINE\nPATH\n");
}

TEST(the_user_s_filters_work_as_user_and_not_scrubbed)
{
    AUTO(fixture_close) struct fixture at = open_repository();
    AUTO(buf_finish) struct buf output = BUF_INIT(100);
    struct git git = scrubbed();
    struct git_io io = GIT_IO_INIT;
    char top[128];

    SHELL("git config --global filter.up.clean 'tr a-z A-Z';"
          "echo '* filter=up' > repo/.gitattributes");
    (void)snprintf(top, sizeof(top), "%s/repo", at.path);
    git.work_tree = top;
    io.output = &output;
    CHECK_EQ(git_expect(&git, GIT_ARGS("hash-object", "file"), &io, &err), 0);
    CHECK_STR(output.data, printed("echo one | git hash-object --stdin"));
    buf_clear(&output);
    git.trust = GIT_AS_USER;
    CHECK_EQ(git_expect(&git, GIT_ARGS("hash-object", "file"), &io, &err), 0);
    CHECK_STR(output.data, printed("echo ONE | git hash-object --stdin"));
}

TEST(what_lies_in_the_working_directory_is_not_taken_for_git)
{
    AUTO(fixture_close) struct fixture at = open_repository();
    struct git_io io = GIT_IO_INIT;

    fake_git(&at, "exit 77");
    CHECK_EQ(run_fake(&io), 77);
    CHECK_EQ(chdir("bin"), 0);
    CHECK_EQ(setenv("PATH", ":.:bin::", 1), 0);
    CHECK(run_fake(&io) != 77);
}

TEST(a_missing_work_tree_is_an_error_of_its_own)
{
    AUTO(fixture_close) struct fixture at = open_repository();
    struct git git = scrubbed();

    git.work_tree = "/nonexistent/tree";
    CHECK_EQ(git_run(&git, GIT_ARGS("status"), NULL, &err), -ENOENT);
}
