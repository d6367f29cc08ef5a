/* selftest.c - the set-up: what programs must not find, and how they are run. */
#include "core/host/selftest.h"
#include "base/clock.h"
#include "base/dir.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "core/host/cleanup.h"
#include "core/host/selftest_case.h"
#include "core/host/selftest_sh.h"
#include "core/run/run.h"
#include "core/state/state.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROBE_INSIDE "/carrel"
#define MARK_VARIABLE "CARREL_TEST_MARK"
#define CASE_TIMEOUT_MS 15000

void selftest_end(struct selftest_row *row, enum selftest_outcome outcome, const char *fmt, ...)
{
    char text[sizeof(row->seen)];
    va_list ap;

    va_start(ap, fmt);
    int n = vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    size_t len = n < 0 ? 0 : (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1;
    (void)str_escape(text, len, row->seen, sizeof(row->seen));
    row->outcome = outcome;
}

struct carrel_run_result *selftest_program(struct selftest *test, const char *const *argv,
        struct carrel_run_options *options, struct selftest_row *row)
{
    struct carrel_run_result *result = NULL;
    struct carrel_error err = { 0 };

    options->argv = argv;
    options->runtime = test->runtime;
    if (options->n_mounts == 0 && test->probe == test->mount.target) {
        options->mounts = &test->mount;
        options->n_mounts = 1;
    }
    if (!options->timeout_ms)
        options->timeout_ms = CASE_TIMEOUT_MS;
    if (!options->best_effort && test->best_effort[0])
        options->best_effort = test->best_effort;
    const struct run_request request = { .options = options }; /* under no policy */
    if (run_execute(&request, &result, &err) == 0)
        return result;
    selftest_end(row, SELFTEST_FAILED, "could not be run: %s", err.message);
    return NULL;
}

struct carrel_run_result *selftest_shell(struct selftest *test, const char *name,
        const char *argument, struct carrel_run_options *options, struct selftest_row *row)
{
    const char *const argv[] = { "/bin/sh", "-c", selftest_sh, "sh", name, test->mark,
        SELFTEST_MARK_NAME, test->probe, test->pid_ns, argument, NULL };

    return selftest_program(test, argv, options, row);
}

struct carrel_run_result *selftest_probe(struct selftest *test, const char *name,
        const char *argument, struct carrel_run_options *options, struct selftest_row *row)
{
    const char *const argv[] = { test->probe, "probe", name, argument, NULL };

    return selftest_program(test, argv, options, row);
}

/* Calls `each` for every number that is a name in `path`, until it answers false. */
static size_t count_numbers(const char *path,
        bool (*does_count)(const char *name, const char *mark), const char *mark)
{
    AUTO(dir_close) DIR *dir = dir_open(AT_FDCWD, path);
    size_t n = 0;

    for (const char *name; (name = dir_next(dir));)
        n += name[0] >= '0' && name[0] <= '9' && does_count(name, mark);
    return n;
}

static bool counts_always(const char *name, const char *mark)
{
    (void)name;
    (void)mark;
    return true;
}

size_t selftest_count_open(void)
{
    return count_numbers("/proc/self/fd", counts_always, NULL);
}

static bool has_mark(const char *pid, const char *mark)
{
    char path[64];
    char line[sizeof(selftest_sh) + 4096]; /* the mark comes after the script */

    (void)snprintf(path, sizeof(path), "/proc/%.20s/cmdline", pid);
    AUTO(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : fd_read_all(fd, line, sizeof(line));
    return n > 0 && memmem(line, (size_t)n, mark, strlen(mark));
}

unsigned selftest_count_marked(const struct selftest *test)
{
    return (unsigned)count_numbers("/proc", has_mark, test->mark);
}

static int start_marked(struct selftest *test, struct carrel_error *err)
{
    int pair[2];
    char byte;

    if (pipe2(pair, O_CLOEXEC) < 0)
        return err_set_errno(err, -errno, "pipe");
    AUTO(fd_close) int in = pair[0];
    AUTO(fd_close) int out = pair[1];
    test->marked = fork();
    if (test->marked < 0)
        return err_set_errno(err, -errno, "fork");
    if (test->marked == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        (void)prctl(PR_SET_NAME, SELFTEST_MARK_NAME, 0, 0, 0);
        (void)syscall(SYS_close_range, 0U, ~0U, 0U); /* also the pipe: it is ready */
        for (;;)
            (void)pause();
    }
    fd_close(fd_steal(&out));
    (void)fd_read_all(in, &byte, 1);
    return 0;
}

bool selftest_end_marked(struct selftest *test)
{
    int status = 0;

    if (test->marked <= 0)
        return false;
    bool is_alive = waitpid(test->marked, &status, WNOHANG) == 0;
    if (is_alive) {
        (void)kill(test->marked, SIGKILL);
        (void)waitpid(test->marked, NULL, 0);
    }
    test->marked = 0;
    return is_alive;
}

static int open_listeners(struct selftest *test, struct carrel_error *err)
{
    struct sockaddr_in in = { .sin_family = AF_INET };
    struct sockaddr_un un = { .sun_family = AF_UNIX };
    size_t name = strlen(test->mark);
    socklen_t len = sizeof(in);

    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    test->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (test->listener < 0 || bind(test->listener, (const struct sockaddr *)&in, len) < 0 ||
            listen(test->listener, 8) < 0 ||
            getsockname(test->listener, (struct sockaddr *)&in, &len) < 0)
        return err_set_errno(err, -errno, "listen on 127.0.0.1");
    (void)snprintf(test->port, sizeof(test->port), "%u", ntohs(in.sin_port));

    memcpy(un.sun_path + 1, test->mark, name);
    len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + name);
    test->abstract = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (test->abstract < 0 || bind(test->abstract, (const struct sockaddr *)&un, len) < 0 ||
            listen(test->abstract, 8) < 0)
        return err_set_errno(err, -errno, "listen on an abstract socket");
    return 0;
}

static int leave_marks(struct selftest *test, struct carrel_error *err)
{
    int r = state_new_id('M', test->mark, err);
    if (r < 0)
        return r;
    if (setenv(MARK_VARIABLE, test->mark, 1) < 0)
        return err_set_errno(err, -errno, "set a variable");
    ssize_t n = readlink("/proc/self/ns/pid", test->pid_ns, sizeof(test->pid_ns) - 1);
    if (n < 0)
        return err_set_errno(err, -errno, "read '/proc/self/ns/pid'");
    test->pid_ns[n] = '\0';
    test->descriptor = open("/", O_RDONLY | O_DIRECTORY); /* inheritable: that is the point */
    if (test->descriptor < 0)
        return err_set_errno(err, -errno, "open '/'");
    r = open_listeners(test, err);
    return r < 0 ? r : start_marked(test, err);
}

int selftest_new(const char *runtime, const char *program, struct selftest **out,
        struct carrel_error *err)
{
    struct runtime *found;
    AUTO(cleanup_finish) struct cleanup cleanup = { 0 };

    int r = runtime_find(runtime ? runtime : "local", &found, err);
    if (r < 0)
        return r;
    (void)cleanup_run(&cleanup, err); /* if it cannot, the cases will tell */
    AUTO(selftest_free) struct selftest *test = calloc(1, sizeof(*test));
    if (!test)
        return err_set_errno(err, -ENOMEM, "self-test");
    test->descriptor = test->listener = test->abstract = -1;
    test->runtime = runtime_name(found);
    test->mount = (struct carrel_mount){ .source = program, .target = PROBE_INSIDE };
    bool has_mounts = runtime_isolation(found) != ISOLATION_NONE;
    test->probe = has_mounts ? test->mount.target : program;
    r = leave_marks(test, err);
    if (r < 0)
        return err_wrap(err, r, "self-test");
    test->n_open = selftest_count_open();
    *out = ptr_steal(&test);
    return 0;
}

void selftest_free(struct selftest *test)
{
    if (!test)
        return;
    (void)selftest_end_marked(test);
    (void)unsetenv(MARK_VARIABLE);
    fd_close(test->descriptor);
    fd_close(test->listener);
    fd_close(test->abstract);
    free(test);
}

bool selftest_next(struct selftest *test, struct selftest_row *row)
{
    if (test->at == n_selftest_cases)
        return false;
    const struct selftest_case *c = &selftest_cases[test->at++];
    uint64_t began_ns = clock_ns();

    *row = (struct selftest_row){ .group = c->group, .name = c->name };
    if (test->is_hopeless)
        selftest_end(row, SELFTEST_SKIPPED, "there is no sandbox; see 'carrel health'");
    else
        c->run(test, c, row);
    row->duration_ms = (clock_ns() - began_ns) / 1000000;
    return true;
}
