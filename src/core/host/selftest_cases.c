/*
 * selftest_cases.c - what is tried, and what must come of it.
 *
 * A case that is a shell line prints one line, and passes when that is the wanted one. "held"
 * is printed by the line that follows a failed attempt; an attempt that succeeds prints what it
 * got. A probe passes when the call was refused by the filter, and not merely by the kernel
 * behind it for some other reason.
 */
#include "base/fd.h"
#include "base/str.h"
#include "core/host/cleanup.h"
#include "core/host/selftest_case.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

DEFINE_AUTO(struct carrel_run_result *, carrel_run_result_free)
#define RESULT AUTO(carrel_run_result_free) struct carrel_run_result *
#define MB (UINT64_C(1) << 20)

/* The first line of what it printed, or how it ended when it printed nothing. */
static const char *shown(const struct carrel_run_result *result, char text[static 160])
{
    size_t len;
    const char *out = carrel_run_result_stdout(result, &len);

    if (len == 0)
        out = carrel_run_result_stderr(result, &len);
    if (len > 0)
        return str_escape(out, strcspn(out, "\n"), text, 160);
    (void)snprintf(text, 160, "%s, status %d %s", carrel_reason_name(result->reason),
            carrel_run_result_status(result), carrel_run_result_message(result));
    return text;
}

static bool printed(const struct carrel_run_result *result, const char *wanted)
{
    size_t len;
    const char *out = carrel_run_result_stdout(result, &len);
    size_t n = strlen(wanted);

    return len == n + 1 && memcmp(out, wanted, n) == 0 && out[n] == '\n';
}

static void set_verdict(struct selftest_row *row, bool is_good, const char *seen)
{
    selftest_end(row, is_good ? SELFTEST_PASSED : SELFTEST_FAILED, "%s", seen);
}

static void shell_case(
        struct selftest *test, const struct selftest_case *c, struct selftest_row *row)
{
    struct carrel_run_options options = CARREL_RUN_OPTIONS_INIT;
    char text[160];

    RESULT result = selftest_shell(test, c->text, NULL, &options, row);
    if (result)
        set_verdict(row, printed(result, c->wanted), shown(result, text));
}

/* EPERM and ENOSYS are the filter's answers; x32 calls end the process. */
static void refused_call(
        struct selftest *test, const struct selftest_case *c, struct selftest_row *row)
{
    struct carrel_run_options options = CARREL_RUN_OPTIONS_INIT;
    char text[160];

    RESULT result = selftest_probe(test, c->text, "made-by-probe", &options, row);
    if (!result)
        return;
    if (result->reason == CARREL_DENIED)
        set_verdict(row, true, "ended by the filter (SIGSYS)");
    else
        set_verdict(row, printed(result, "EPERM") || printed(result, "ENOSYS"),
                shown(result, text));
}

static void probe_answer(
        struct selftest *test, const struct selftest_case *c, struct selftest_row *row)
{
    struct carrel_run_options options = CARREL_RUN_OPTIONS_INIT;
    const char *argument = strcmp(c->text, "host-port") == 0 ? test->port : test->mark;
    char text[160];

    RESULT result = selftest_probe(test, c->text, argument, &options, row);
    if (result)
        set_verdict(row, printed(result, c->wanted), shown(result, text));
}

/* Also the first case: it tells which limits can be enforced for this user. */
static void first_run(
        struct selftest *test, const struct selftest_case *c, struct selftest_row *row)
{
    static const enum limit_holder wanted[LIMIT_COUNT] = {
        [LIMIT_MEMORY] = HELD_BY_CGROUP,
        [LIMIT_PIDS] = HELD_BY_CGROUP,
        [LIMIT_CPU] = HELD_BY_CGROUP,
        [LIMIT_DISK] = HELD_BY_FILESYSTEM,
        [LIMIT_FILES] = HELD_BY_RLIMIT,
    };
    struct carrel_run_options options = CARREL_RUN_OPTIONS_INIT;
    size_t at = 0;
    char text[160];

    RESULT result = selftest_shell(test, c->text, NULL, &options, row);
    test->is_hopeless = !result;
    if (!result)
        return;
    memcpy(test->held_by, result->held_by, sizeof(test->held_by));
    for (enum limit i = 0; i < LIMIT_COUNT; i++)
        if (test->held_by[i] != wanted[i])
            at += (size_t)snprintf(test->best_effort + at, sizeof(test->best_effort) - at,
                    "%s%s", at ? "," : "", limit_name(i));
    set_verdict(row, printed(result, c->wanted), shown(result, text));
}

static void exit_status(
        struct selftest *test, const struct selftest_case *c, struct selftest_row *row)
{
    struct carrel_run_options options = CARREL_RUN_OPTIONS_INIT;

    RESULT result = selftest_shell(test, c->text, NULL, &options, row);
    if (!result)
        return;
    int status = carrel_run_result_status(result);
    selftest_end(row, status == 42 ? SELFTEST_PASSED : SELFTEST_FAILED, "status %d", status);
}

static void two_streams(
        struct selftest *test, const struct selftest_case *c, struct selftest_row *row)
{
    struct carrel_run_options options = CARREL_RUN_OPTIONS_INIT;
    size_t len;
    char text[160];

    RESULT result = selftest_shell(test, c->text, NULL, &options, row);
    if (!result)
        return;
    const char *err = carrel_run_result_stderr(result, &len);
    set_verdict(row,
            printed(result, "to stdout") && len == 10 && memcmp(err, "to stderr\n", 10) == 0,
            shown(result, text));
}

/* A shell ignores SIGTERM, and a grandchild ignores everything and keeps the pipes. */
static void timeout(
        struct selftest *test, const struct selftest_case *c, struct selftest_row *row)
{
    struct carrel_run_options options = CARREL_RUN_OPTIONS_INIT;

    options.timeout_ms = 300;
    RESULT result = selftest_shell(test, c->text, NULL, &options, row);
    if (!result)
        return;
    unsigned left = selftest_count_marked(test);
    bool is_good = result->reason == CARREL_TIMEOUT && result->duration_ms < 5000 && left == 0;
    selftest_end(row, is_good ? SELFTEST_PASSED : SELFTEST_FAILED,
            "%s after %ju ms, %u processes left", carrel_reason_name(result->reason),
            (uintmax_t)result->duration_ms, left);
}

/* A limit that cannot be enforced is refused unless the caller accepted that. */
static void no_silent_substitute(
        struct selftest *test, const struct selftest_case *c, struct selftest_row *row)
{
    static const char *const argv[] = { "true", NULL };
    struct carrel_run_options options = CARREL_RUN_OPTIONS_INIT;
    struct carrel_run_result *result = NULL;
    struct carrel_error err = { 0 };

    (void)c;
    if (test->held_by[LIMIT_MEMORY] == HELD_BY_CGROUP) {
        selftest_end(row, SELFTEST_SKIPPED, "every limit can be held here");
        return;
    }
    options.argv = argv;
    options.runtime = test->runtime;
    options.memory_bytes = 64 * MB;
    int r = carrel_run(&options, &result, &err);
    carrel_run_result_free(result);
    err.message[strcspn(err.message, ";")] = '\0'; /* the rest is how to get it */
    set_verdict(row, r == -ENOTSUP, r < 0 ? err.message : "it ran all the same");
}

static void memory(
        struct selftest *test, const struct selftest_case *c, struct selftest_row *row)
{
    struct carrel_run_options options = CARREL_RUN_OPTIONS_INIT;
    char text[160];

    options.memory_bytes = 64 * MB;
    RESULT result = selftest_shell(test, c->text, NULL, &options, row);
    if (!result)
        return;
    int status = carrel_run_result_status(result);
    if (result->held_by[LIMIT_MEMORY] == HELD_BY_CGROUP)
        selftest_end(row,
                result->reason == CARREL_MEMORY_LIMIT ? SELFTEST_PASSED : SELFTEST_FAILED,
                "%s, status %d", carrel_reason_name(result->reason), status);
    else
        selftest_end(row, status != 0 ? SELFTEST_PASSED : SELFTEST_FAILED,
                "held for each process (%s): %s",
                limit_holder_name(result->held_by[LIMIT_MEMORY]), shown(result, text));
}

static void pids(struct selftest *test, const struct selftest_case *c, struct selftest_row *row)
{
    struct carrel_run_options options = CARREL_RUN_OPTIONS_INIT;
    char text[160];

    options.pids = 16;
    RESULT result = selftest_probe(test, c->text, "64", &options, row);
    if (!result)
        return;
    bool is_good = printed(result, "15 EAGAIN"); /* the probe itself is the sixteenth */
    if (result->held_by[LIMIT_PIDS] == HELD_BY_CGROUP)
        is_good = is_good && result->reason == CARREL_PIDS_LIMIT;
    selftest_end(row, is_good ? SELFTEST_PASSED : SELFTEST_FAILED, "%s after %s (%s)",
            carrel_reason_name(result->reason), shown(result, text),
            limit_holder_name(result->held_by[LIMIT_PIDS]));
}

static void disk(struct selftest *test, const struct selftest_case *c, struct selftest_row *row)
{
    struct carrel_run_options options = CARREL_RUN_OPTIONS_INIT;

    options.disk_bytes = 8 * MB;
    RESULT result = selftest_shell(test, c->text, NULL, &options, row);
    if (!result)
        return;
    uint64_t written = result->usage.written_bytes; /* not known is far above the bound */
    bool is_good = result->reason == CARREL_DISK_LIMIT && written <= 9 * MB;
    char size[32] = "an unknown amount";
    if (written != USAGE_UNKNOWN)
        (void)str_size(written, size);
    selftest_end(row, is_good ? SELFTEST_PASSED : SELFTEST_FAILED, "%s after %s, status %d",
            carrel_reason_name(result->reason), size, carrel_run_result_status(result));
}

/* A tenth of a core, and two loops that would like two. The bound is generous: other load can
 * only lower the figure. */
static void cpu(struct selftest *test, const struct selftest_case *c, struct selftest_row *row)
{
    struct carrel_run_options options = CARREL_RUN_OPTIONS_INIT;

    if (test->held_by[LIMIT_CPU] != HELD_BY_CGROUP) {
        selftest_end(row, SELFTEST_SKIPPED,
                "this user has no cgroup, so cpu is not limited; see 'carrel health'");
        return;
    }
    options.cpu_milli = 100;
    options.timeout_ms = 1200;
    RESULT result = selftest_shell(test, c->text, NULL, &options, row);
    if (!result)
        return;
    bool is_good = result->reason == CARREL_TIMEOUT &&
                   result->usage.cpu_ms < result->duration_ms * 3 / 10;
    selftest_end(row, is_good ? SELFTEST_PASSED : SELFTEST_FAILED, "%ju ms of cpu in %ju ms",
            (uintmax_t)result->usage.cpu_ms, (uintmax_t)result->duration_ms);
}

static void files(
        struct selftest *test, const struct selftest_case *c, struct selftest_row *row)
{
    struct carrel_run_options options = CARREL_RUN_OPTIONS_INIT;
    char text[160];

    options.files = 64;
    RESULT result = selftest_probe(test, c->text, "256", &options, row);
    if (result)
        set_verdict(
                row, printed(result, "61 EMFILE"), shown(result, text)); /* three are streams */
}

static bool is_whole(const char *path, uint64_t bytes)
{
    struct stat st;

    return path && stat(path, &st) == 0 && (uint64_t)st.st_size == bytes;
}

/* The file is the self-test's, not the user's. */
static void remove_output(char *path)
{
    if (!path)
        return;
    (void)unlink(path);
    *strrchr(path, '/') = '\0';
    (void)rmdir(path); /* the run's directory, which held nothing else */
}

static void output(
        struct selftest *test, const struct selftest_case *c, struct selftest_row *row)
{
    struct carrel_run_options options = CARREL_RUN_OPTIONS_INIT;
    size_t len;

    options.output_bytes = 4096;
    RESULT result = selftest_shell(test, c->text, NULL, &options, row);
    if (!result)
        return;
    (void)carrel_run_result_stdout(result, &len);
    bool is_good = result->is_truncated && result->stdout_bytes == MB && len <= 4096 &&
                   (!result->stdout_file || is_whole(result->stdout_file, MB));
    selftest_end(row, is_good ? SELFTEST_PASSED : SELFTEST_FAILED,
            "%zu of %ju bytes in the result, %s", len, (uintmax_t)result->stdout_bytes,
            result->stdout_file ? "the whole in a file" : "no place for a file");
    remove_output(result->stdout_file);
}

/* A file that every user of this machine may read and write. */
static int plant(char path[static 32], struct selftest_row *row)
{
    (void)snprintf(path, 32, "/tmp/carrel-test-XXXXXX");
    AUTO(fd_close) int fd = mkostemp(path, O_CLOEXEC);
    int r = fd < 0 || fchmod(fd, 0666) < 0 ? -errno : fd_write_all(fd, "planted\n", 8);
    if (r < 0)
        selftest_end(
                row, SELFTEST_SKIPPED, "no file can be made in /tmp: %s", strerrordesc_np(-r));
    return r;
}

static void host_files(
        struct selftest *test, const struct selftest_case *c, struct selftest_row *row)
{
    struct carrel_run_options options = CARREL_RUN_OPTIONS_INIT;
    char path[32];
    char text[160];

    if (plant(path, row) < 0)
        return;
    RESULT result = selftest_shell(test, c->text, path, &options, row);
    (void)unlink(path);
    if (result)
        set_verdict(row, printed(result, c->wanted), shown(result, text));
}

static void mounted_file(
        struct selftest *test, const struct selftest_case *c, struct selftest_row *row)
{
    struct carrel_run_options options = CARREL_RUN_OPTIONS_INIT;
    char path[32];
    char text[160];

    if (plant(path, row) < 0)
        return;
    const struct carrel_mount mount = { .source = path, .target = "/mnt/planted" };
    options.mounts = &mount;
    options.n_mounts = 1;
    RESULT result = selftest_shell(test, c->text, NULL, &options, row);
    (void)unlink(path);
    if (result)
        set_verdict(row, printed(result, c->wanted), shown(result, text));
}

/* Kills all it can reach, once it has made sure that it cannot reach every process. */
static void kill_all(
        struct selftest *test, const struct selftest_case *c, struct selftest_row *row)
{
    struct carrel_run_options options = CARREL_RUN_OPTIONS_INIT;
    char text[160];

    RESULT result = selftest_shell(test, c->text, NULL, &options, row);
    if (!result)
        return;
    siginfo_t info = { 0 };
    bool is_alive =
            waitid(P_PID, (id_t)test->marked, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
            info.si_pid == 0;
    selftest_end(row,
            is_alive && printed(result, c->wanted) ? SELFTEST_PASSED : SELFTEST_FAILED,
            "%s; the host's process %s", shown(result, text), is_alive ? "lives" : "is dead");
}

static void nothing_left(
        struct selftest *test, const struct selftest_case *c, struct selftest_row *row)
{
    AUTO(cleanup_finish) struct cleanup cleanup = { 0 };
    struct carrel_error err = { 0 };

    (void)c;
    size_t n_open = selftest_count_open();
    unsigned processes = selftest_count_marked(test);
    (void)selftest_end_marked(test);
    bool has_child =
            waitid(P_ALL, 0, &(siginfo_t){ 0 }, WEXITED | WNOHANG | WNOWAIT | __WALL) == 0;
    if (cleanup_run(&cleanup, &err) < 0) {
        set_verdict(row, false, err.message);
        return;
    }
    bool is_good =
            n_open == test->n_open && processes == 0 && !has_child && cleanup.sandboxes == 0;
    selftest_end(row, is_good ? SELFTEST_PASSED : SELFTEST_FAILED,
            "processes: %u, groups or locks: %u, children: %s, descriptors: %zd", processes,
            cleanup.sandboxes, has_child ? "some" : "none", (ssize_t)(n_open - test->n_open));
}

#define BASICS "basics"
#define LIMITS "limits"
#define ESCAPES "escapes"
#define AFTER "after"

/* clang-format off */
const struct selftest_case selftest_cases[] = {
    { BASICS, "a program runs", first_run, "hello", "hello" },
    { BASICS, "its exit status comes back", exit_status, "exit-42", NULL },
    { BASICS, "its streams stay apart", two_streams, "streams", NULL },
    { BASICS, "it can write its workspace", shell_case, "write-workspace", "text" },
    { BASICS, "loopback works", probe_answer, "loopback", "done" },

    { LIMITS, "timeout, against hostile children", timeout, "linger", NULL },
    { LIMITS, "memory", memory, "memory", NULL },
    { LIMITS, "processes", pids, "forks", NULL },
    { LIMITS, "cpu", cpu, "two-loops", NULL },
    { LIMITS, "disk, in bytes", disk, "fill-bytes", NULL },
    { LIMITS, "disk, in files", disk, "fill-files", NULL },
    { LIMITS, "open files", files, "files", NULL },
    { LIMITS, "output", output, "much-output", NULL },
    { LIMITS, "no substitute without consent", no_silent_substitute, NULL, NULL },

    { ESCAPES, "environment of the caller", shell_case, "environment", "held" },
    { ESCAPES, "environment of pid 1", shell_case, "environment-of-init", "held" },
    { ESCAPES, "descriptors of the caller", shell_case, "descriptors", "3" },
    { ESCAPES, "files of the host", host_files, "host-file", "held" },
    { ESCAPES, "password hashes", shell_case, "password-hashes", "held" },
    { ESCAPES, "home directories", shell_case, "homes", "/home/agent" },
    { ESCAPES, "writing to /usr", shell_case, "write-usr", "held" },
    { ESCAPES, "writing to a read-only mount", mounted_file, "write-mount", "held" },
    { ESCAPES, "processes of the host", shell_case, "host-processes", "held" },
    { ESCAPES, "kill -9 -1", kill_all, "kill-all", "ended its own with 137" },
    { ESCAPES, "kernel.core_pattern", shell_case, "core-pattern", "held" },
    { ESCAPES, "sysrq-trigger", shell_case, "sysrq", "held" },
    { ESCAPES, "devices of the host", shell_case, "devices",
        "fd full null ptmx pts random shm stderr stdin stdout tty urandom zero" },
    { ESCAPES, "interfaces of the host", shell_case, "interfaces", "lo" },
    { ESCAPES, "a way out of the network", probe_answer, "route", "ENETUNREACH" },
    { ESCAPES, "the host's 127.0.0.1", probe_answer, "host-port", "ECONNREFUSED" },
    { ESCAPES, "abstract sockets", probe_answer, "abstract", "ECONNREFUSED" },
    { ESCAPES, "raw packets", probe_answer, "packets", "EAFNOSUPPORT" },
    { ESCAPES, "capabilities", shell_case, "capabilities", "none" },
    { ESCAPES, "new privileges by exec", shell_case, "new-privileges", "1" },
    { ESCAPES, "set-uid bit", shell_case, "set-uid", "held" },
    { ESCAPES, "device nodes", refused_call, "device", NULL },
    { ESCAPES, "mount", refused_call, "mount", NULL },
    { ESCAPES, "umount", refused_call, "umount", NULL },
    { ESCAPES, "new mount API", refused_call, "fsopen", NULL },
    { ESCAPES, "chroot", refused_call, "chroot", NULL },
    { ESCAPES, "new namespaces by unshare", refused_call, "unshare", NULL },
    { ESCAPES, "new namespaces by clone", refused_call, "clone", NULL },
    { ESCAPES, "entering namespaces", refused_call, "setns", NULL },
    { ESCAPES, "ptrace", refused_call, "ptrace", NULL },
    { ESCAPES, "bpf", refused_call, "bpf", NULL },
    { ESCAPES, "perf events", refused_call, "perf", NULL },
    { ESCAPES, "io_uring", refused_call, "io_uring", NULL },
    { ESCAPES, "keyrings", refused_call, "keyctl", NULL },
    { ESCAPES, "userfaultfd", refused_call, "userfaultfd", NULL },
    { ESCAPES, "files by handle", refused_call, "handle", NULL },
    { ESCAPES, "typing into the terminal", refused_call, "tiocsti", NULL },
    { ESCAPES, "x32 system calls", refused_call, "x32", NULL },

    { AFTER, "nothing is left", nothing_left, NULL, NULL },
};
/* clang-format on */
const size_t n_selftest_cases = ARRAY_LEN(selftest_cases);
