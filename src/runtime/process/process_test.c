/* What is specific to `process`; tests/contract has what it shares with every runtime. */
#include "base/err.h"
#include "base/fd.h"
#include "base/tree.h"
#include "harness.h"
#include "runtime/adapters.h"
#include "runtime/runtime.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct carrel_error err;

static struct sandbox_spec plain_spec(void)
{
    return (struct sandbox_spec){ .id = "test", .network = NETWORK_HOST };
}

static struct sandbox *make(const struct sandbox_spec *spec)
{
    struct sandbox *box = NULL;

    if (sandbox_create(&process_runtime, spec, &box, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.message);
    return box;
}

/* Runs a shell line to its end; its output, truncated if necessary. */
static int run(struct sandbox *box, const char *line, char *text, size_t size)
{
    const char *const argv[] = { "sh", "-c", line, NULL };
    const char *const env[] = { "PATH=/usr/bin:/bin", NULL };
    const struct process_spec spec = { .argv = argv, .env = env };
    AUTO(process_close) struct process process = PROCESS_INIT;
    struct sandbox_event event;

    if (sandbox_start(box, &spec, &process, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.message);
    ssize_t n = fd_read_all(process.stdout_fd, text, size - 1);
    CHECK(n >= 0);
    text[n] = '\0';
    struct pollfd ended = { .fd = box->event_fd, .events = POLLIN };
    CHECK_EQ(poll(&ended, 1, 20000), 1);
    CHECK_EQ(sandbox_next_event(box, &event, &err), 0);
    CHECK_EQ(event.process, process.id);
    return event.wait_status;
}

static void check_refused(const struct sandbox_spec *spec, const char *reason)
{
    struct sandbox *box = NULL;

    CHECK_EQ(sandbox_create(&process_runtime, spec, &box, &err), -ENOTSUP);
    CHECK_EQ(strncmp(err.message, "runtime process: ", 17), 0);
    if (!strstr(err.message, reason))
        test_fail(__FILE__, __LINE__, "no '%s' in: %s", reason, err.message);
    CHECK(strstr(err.message, "local"));
}

TEST(what_a_plain_process_cannot_have_is_refused_with_a_way_out)
{
    struct sandbox_spec spec = plain_spec();

    spec.root = "/srv/root";
    check_refused(&spec, "root filesystem");
    spec = plain_spec();
    spec.network = NETWORK_NONE;
    check_refused(&spec, "network");
    spec = plain_spec();
    spec.hostname = "box";
    check_refused(&spec, "host name");
    spec = plain_spec();
    spec.has_user = true;
    spec.uid = geteuid() + 1;
    spec.gid = getegid();
    check_refused(&spec, "user");
}

TEST(the_callers_own_user_may_be_named)
{
    struct sandbox_spec spec = plain_spec();

    spec.has_user = true;
    spec.uid = geteuid();
    spec.gid = getegid();
    AUTO(sandbox_free) struct sandbox *box = make(&spec);
    CHECK(box->user_name[0]);
}

TEST(mounts_other_than_one_writable_workspace_are_refused)
{
    const struct sandbox_mount mounts[] = {
        { .source = "/tmp", .target = "/workspace", .access = ACCESS_READ_WRITE },
        { .source = "/tmp", .target = "/data", .access = ACCESS_READ_WRITE },
        { .source = "/tmp", .target = "/workspace", .access = ACCESS_READ_ONLY },
        { .source = "/no/such/directory", .target = "/workspace", .access = ACCESS_READ_WRITE },
    };
    struct sandbox_spec spec = plain_spec();
    struct sandbox *box = NULL;

    spec.mounts = mounts;
    spec.n_mounts = 2;
    check_refused(&spec, "/workspace");
    spec.mounts = mounts + 1;
    spec.n_mounts = 1;
    check_refused(&spec, "/workspace");
    spec.mounts = mounts + 2;
    check_refused(&spec, "read-only");
    spec.mounts = mounts + 3;
    CHECK_EQ(sandbox_create(&process_runtime, &spec, &box, &err), -ENOENT);
    CHECK(strstr(err.message, "/no/such/directory"));
}

TEST(a_directory_given_as_the_workspace_is_where_programs_start)
{
    char dir[] = "/tmp/process-test-XXXXXX";
    char text[256];

    CHECK(test_mkdtemp(dir));
    const struct sandbox_mount mount = {
        .source = dir, .target = "/workspace", .access = ACCESS_READ_WRITE
    };
    struct sandbox_spec spec = plain_spec();
    spec.mounts = &mount;
    spec.n_mounts = 1;
    struct sandbox *box = make(&spec);
    CHECK_STR(box->workspace, dir);
    CHECK(strcmp(box->home, dir) != 0);
    CHECK_EQ(run(box, "echo kept >file; pwd -P", text, sizeof(text)), 0);
    CHECK_EQ(strncmp(text, dir, strlen(dir)), 0);
    char home[4096];
    (void)snprintf(home, sizeof(home), "%s", box->home);
    CHECK_EQ(access(home, F_OK), 0);

    char path[8192];
    (void)snprintf(path, sizeof(path), "%s/made", home);
    AUTO(fd_close) int made = sandbox_open_file(box, path, O_RDWR | O_CREAT, 0600, &err);
    CHECK(made >= 0);
    (void)snprintf(path, sizeof(path), "%s/../..%s/file", home, dir);
    CHECK_EQ(sandbox_open_file(box, path, O_RDONLY, 0, &err), -EXDEV);
    CHECK_EQ(sandbox_open_file(box, "/etc/passwd", O_RDONLY, 0, &err), -ENOTSUP);
    sandbox_free(box);
    CHECK_EQ(access(home, F_OK), -1);

    AUTO(fd_close) int parent = open("/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC);
    AUTO(fd_close) int kept = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK_EQ(fd_read_file(kept, "file", text, sizeof(text)), 5);
    CHECK_EQ(tree_remove(parent, dir + strlen("/tmp/"), &err), 0);
}

TEST(the_own_directory_is_private_and_goes_away_whatever_is_in_it)
{
    const struct sandbox_spec spec = plain_spec();
    char text[64];
    char path[4096];
    struct stat st;
    struct sandbox *box = make(&spec);

    (void)snprintf(path, sizeof(path), "%s", box->workspace);
    CHECK_EQ(stat(path, &st), 0);
    CHECK_EQ(st.st_mode & 07777, 0700);
    CHECK_EQ(
            run(box,
                    "mkdir -p a/b/c && echo x >a/b/c/file && ln -s / a/root && mkfifo a/fifo &&"
                    "chmod 0 a/b/c a/b a && chmod 0 .",
                    text, sizeof(text)),
            0);
    sandbox_free(box);
    CHECK_EQ(stat(path, &st), -1);
    CHECK_EQ(errno, ENOENT);
}

TEST(limits_that_only_hold_for_one_process_are_refused_when_demanded)
{
    static const enum limit weak[] = { LIMIT_MEMORY, LIMIT_PIDS, LIMIT_CPU, LIMIT_DISK,
        LIMIT_IO_READ, LIMIT_IO_WRITE };

    for (size_t i = 0; i < ARRAY_LEN(weak); i++) {
        struct sandbox_spec spec = plain_spec();
        spec.limits.value[weak[i]] = 1U << 30;
        spec.limits.demanded = LIMIT_BIT(weak[i]);
        check_refused(&spec, limit_name(weak[i]));
    }
}

TEST(best_effort_limits_become_resource_limits_where_there_are_any)
{
    struct sandbox_spec spec = plain_spec();
    char text[256];

    spec.limits.value[LIMIT_MEMORY] = 128U << 20;
    spec.limits.value[LIMIT_PIDS] = 100;
    spec.limits.value[LIMIT_CPU] = 1000;
    spec.limits.value[LIMIT_DISK] = 1U << 20;
    spec.limits.value[LIMIT_FILES] = 50;
    spec.limits.value[LIMIT_IO_READ] = spec.limits.value[LIMIT_IO_WRITE] = 1U << 20;
    spec.limits.demanded = spec.limits.best_effort = LIMIT_BIT(LIMIT_COUNT) - 1;
    AUTO(sandbox_free) struct sandbox *box = make(&spec);
    CHECK_EQ(box->held_by[LIMIT_MEMORY], HELD_BY_RLIMIT);
    CHECK_EQ(box->held_by[LIMIT_PIDS], HELD_BY_NOTHING);
    CHECK_EQ(box->held_by[LIMIT_CPU], HELD_BY_NOTHING);
    CHECK_EQ(box->held_by[LIMIT_DISK], HELD_BY_RLIMIT);
    CHECK_EQ(box->held_by[LIMIT_FILES], HELD_BY_RLIMIT);
    CHECK_EQ(box->held_by[LIMIT_IO_READ], HELD_BY_NOTHING);
    CHECK_EQ(box->held_by[LIMIT_IO_WRITE], HELD_BY_NOTHING);
    /* In kilobytes, blocks of 512 bytes, descriptors. */
    CHECK_EQ(run(box, "ulimit -d; ulimit -f; ulimit -n", text, sizeof(text)), 0);
    CHECK_STR(text, "131072\n2048\n50\n");
}

TEST(without_values_no_limit_is_set_or_claimed)
{
    const struct sandbox_spec spec = plain_spec();
    AUTO(sandbox_free) struct sandbox *box = make(&spec);

    for (size_t i = 0; i < LIMIT_COUNT; i++)
        CHECK_EQ(box->held_by[i], HELD_BY_NOTHING);
    CHECK(!(box->protections & PROTECT_BIT(PROTECT_RLIMITS)));
}

TEST(a_program_of_root_cannot_raise_its_limits_again)
{
    const struct sandbox_spec spec = plain_spec();
    AUTO(sandbox_free) struct sandbox *box = make(&spec);
    unsigned long long permitted = 0;
    char text[256];

    CHECK_EQ(run(box, "grep CapPrm /proc/self/status", text, sizeof(text)), 0);
    CHECK_EQ(sscanf(text, "CapPrm: %llx", &permitted), 1);
    CHECK_EQ(permitted & (1ULL << 24 | 1ULL << 14), 0); /* CAP_SYS_RESOURCE, CAP_IPC_LOCK */
}

/*
 * Starts a program that sends a signal to its parent, which is the supervisor: a program of the
 * same user can do that. It waits for a line first: the start must have finished.
 */
static struct process attack_supervisor(struct sandbox *box, const char *signal)
{
    char line[128];
    const char *const argv[] = { "sh", "-c", line, NULL };
    const char *const env[] = { "PATH=/usr/bin:/bin", NULL };
    const struct process_spec spec = { .argv = argv, .env = env, .has_stdin = true };
    struct process process = PROCESS_INIT;

    (void)snprintf(line, sizeof(line), "read -r go; kill -%s $PPID; echo done; exec sleep 1000",
            signal);
    CHECK_EQ(sandbox_start(box, &spec, &process, &err), 0);
    CHECK_EQ(fd_write_all(process.stdin_fd, "go\n", 3), 0);
    return process;
}

TEST(a_supervisor_that_was_killed_is_reported_by_every_call)
{
    const char *const argv[] = { "true", NULL };
    const char *const env[] = { NULL };
    const struct process_spec start = { .argv = argv, .env = env };
    const struct sandbox_spec spec = plain_spec();
    struct sandbox_event event;
    struct sandbox_usage usage;
    struct process none = PROCESS_INIT;
    char text[64];
    char path[4096];
    struct sandbox *box = make(&spec);

    (void)snprintf(path, sizeof(path), "%s", box->workspace);
    AUTO(process_close) struct process process = attack_supervisor(box, "KILL");
    struct pollfd gone = { .fd = box->event_fd, .events = POLLIN };
    CHECK_EQ(poll(&gone, 1, 20000), 1);
    CHECK(fd_read_all(process.stdout_fd, text, sizeof(text)) >= 0); /* the program died too */
    CHECK_EQ(sandbox_next_event(box, &event, &err), -EOWNERDEAD);
    CHECK(strstr(err.message, "runtime process: the supervisor was killed"));
    CHECK_EQ(sandbox_start(box, &start, &none, &err), -EOWNERDEAD);
    CHECK_EQ(sandbox_signal(box, 1, SIGTERM, &err), -EOWNERDEAD);
    CHECK_EQ(sandbox_stop(box, &usage, &err), -EOWNERDEAD);
    sandbox_free(box);
    CHECK_EQ(access(path, F_OK), -1); /* the free has removed it instead */
    CHECK_EQ(waitpid(-1, NULL, __WALL), -1);
    CHECK_EQ(errno, ECHILD);
}

TEST(a_supervisor_that_was_stopped_goes_on_for_the_end)
{
    const struct sandbox_spec spec = plain_spec();
    struct sandbox_usage usage;
    char byte;
    AUTO(sandbox_free) struct sandbox *box = make(&spec);
    AUTO(process_close) struct process process = attack_supervisor(box, "STOP");

    CHECK_EQ(read(process.stdout_fd, &byte, 1), 1);
    CHECK_EQ(sandbox_stop(box, &usage, &err), 0);
}

TEST(a_caller_without_standard_streams_can_have_sandboxes)
{
    const struct sandbox_spec spec = plain_spec();
    char text[64];
    AUTO(fd_close) int out = fcntl(1, F_DUPFD_CLOEXEC, 10);
    AUTO(fd_close) int errors = fcntl(2, F_DUPFD_CLOEXEC, 10);

    CHECK_EQ(close(0), 0);
    CHECK_EQ(close(1), 0);
    CHECK_EQ(close(2), 0);
    struct sandbox *box = make(&spec);
    int status = run(box, "echo fine; ls /proc/$$/fd", text, sizeof(text));
    sandbox_free(box);
    CHECK_EQ(dup2(out, 1), 1);
    CHECK_EQ(dup2(errors, 2), 2);
    CHECK_EQ(status, 0);
    CHECK_STR(text, "fine\n0\n1\n2\n");
}
