/* cleanup_test.c - what a killed owner leaves is found once. */
#include "core/host/cleanup.h"
#include "harness.h"
#include "runtime/runtime.h"
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* An own /run: what other sandboxes of this machine leave is not ours to count. */
static void enter_own_run(void)
{
    if (geteuid() != 0)
        SKIP("needs root");
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
            mount("none", "/run", "tmpfs", 0, NULL) < 0)
        SKIP("cannot mount an own /run");
}

static struct sandbox *make_sandbox(void)
{
    const struct sandbox_spec spec = {
        .id = "cleanup-test",
        .limits = { .value = { 64U << 20, 16, 1000, 1U << 20, 64 },
                .best_effort = LIMIT_BIT(LIMIT_COUNT) - 1 },
    };
    struct carrel_error err = { 0 };
    struct sandbox *box = NULL;
    struct runtime *runtime;

    CHECK_EQ(runtime_find("local", &runtime, &err), 0);
    if (sandbox_create(runtime, &spec, &box, &err) < 0)
        SKIP("no sandbox here: %s", err.message);
    return box;
}

/*
 * The child is killed, as by a crash. Its sandbox becomes our child, so that we see it end by
 * itself; its files have no owner then.
 */
static void crash_with_a_sandbox(void)
{
    int status;

    CHECK_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        (void)make_sandbox();
        (void)raise(SIGKILL);
    }
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFSIGNALED(status));
    CHECK(waitpid(-1, &status, __WALL) > 0);
    CHECK_EQ(waitpid(-1, &status, __WALL), -1);
}

TEST(what_a_crash_left_is_removed_once)
{
    struct carrel_error err = { 0 };
    struct cleanup cleanup;

    enter_own_run();
    sandbox_free(make_sandbox()); /* skips where there are none */
    crash_with_a_sandbox();
    CHECK_EQ(cleanup_run(&cleanup, &err), 0);
    CHECK_EQ(cleanup.sandboxes, 1);
    CHECK_EQ(cleanup_run(&cleanup, &err), 0);
    CHECK_EQ(cleanup.sandboxes, 0);
}

TEST(a_live_sandbox_is_not_touched)
{
    static const char *const argv[] = { "true", NULL };
    static const char *const env[] = { "PATH=/usr/bin:/bin", NULL };
    const struct process_spec spec = { .argv = argv, .env = env };
    AUTO(process_close) struct process process = PROCESS_INIT;
    struct carrel_error err = { 0 };
    struct cleanup cleanup;

    enter_own_run();
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    CHECK_EQ(cleanup_run(&cleanup, &err), 0);
    CHECK_EQ(cleanup.sandboxes, 0);
    CHECK_EQ(sandbox_start(box, &spec, &process, &err), 0);
}

TEST(every_runtime_that_can_leave_something_is_asked)
{
    struct carrel_error err = { 0 };
    struct cleanup cleanup;

    enter_own_run();
    CHECK_EQ(cleanup_run(&cleanup, &err), 0);
    CHECK_EQ(cleanup.n_rows, 1);
    CHECK_STR(cleanup.rows[0].runtime, "local");
    CHECK_EQ(cleanup.rows[0].error.code, 0);
}
