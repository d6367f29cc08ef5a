/* place.c - see place.h. Everything goes through the port. */
#include "place.h"
#include "base/clock.h"
#include "base/fd.h"
#include "harness.h"
#include "runtime/fake/fake.h"
#include "runtime/traced.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE_NS (UINT64_C(20) * 1000000000)

struct carrel_error err;
struct runtime *subject;
const char *const plain_env[] = { "PATH=/usr/local/bin:/usr/bin:/bin", NULL };

static char tmp_dir[PATH_MAX];

struct sandbox_spec plain_spec(void)
{
    return (struct sandbox_spec){
        .id = "contract",
        .network =
                runtime_isolation(subject) == ISOLATION_NONE ? NETWORK_HOST : NETWORK_NONE,
        .limits.value = {
            [LIMIT_MEMORY] = 256U << 20,
            [LIMIT_PIDS] = 64,
            [LIMIT_CPU] = 1000,
            [LIMIT_DISK] = 64U << 20,
            [LIMIT_FILES] = 200,
        },
    };
}

int create(const struct sandbox_spec *spec, struct sandbox **out)
{
    return sandbox_create(subject, spec, out, &err);
}

/* The test's process ends with its test: nothing of this is freed. */
static struct runtime *find_subject(const char *name)
{
    const bool is_traced = strcmp(name, "traced") == 0;
    struct runtime *found = NULL;

    if (strcmp(name, "wrapped") == 0) {
        fake_wrap("local");
        name = "fake";
    }
    CHECK_EQ(runtime_find(is_traced ? "local" : name, &found, &err), 0);
    if (!is_traced)
        return found;
    const int fd = memfd_create("trace", MFD_CLOEXEC);
    CHECK(fd >= 0);
    found = runtime_traced(found, fd);
    CHECK(found);
    return found;
}

void place_begin(const char *runtime)
{
    AUTO(sandbox_free) struct sandbox *box = NULL;

    subject = find_subject(runtime);
    const char *tmp = getenv("TMPDIR");
    (void)snprintf(tmp_dir, sizeof(tmp_dir), "%s/contract-XXXXXX", tmp ? tmp : "/tmp");
    CHECK(test_mkdtemp(tmp_dir));
    CHECK_EQ(setenv("TMPDIR", tmp_dir, 1), 0);
    const struct sandbox_spec spec = plain_spec();
    int r = create(&spec, &box);
    if (r == -ENOTSUP) {
        (void)rmdir(tmp_dir);
        SKIP("%s", err.message);
    }
    if (r < 0)
        test_fail(__FILE__, __LINE__, "%s", err.message);
}

void place_end(void)
{
    if (rmdir(tmp_dir) < 0)
        test_fail(__FILE__, __LINE__, "something is left in %s: %s", tmp_dir, strerror(errno));
}

struct sandbox *make_sandbox(void)
{
    struct sandbox *box = NULL;
    const struct sandbox_spec spec = plain_spec();

    if (create(&spec, &box) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.message);
    return box;
}

struct process_spec plain_process(const char *const *argv)
{
    return (struct process_spec){ .argv = argv, .env = plain_env };
}

struct process start(struct sandbox *box, const struct process_spec *spec)
{
    struct process process = PROCESS_INIT;

    if (sandbox_start(box, spec, &process, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.message);
    return process;
}

struct process start_shell(struct sandbox *box, const char *line)
{
    const char *const argv[] = { "sh", "-c", line, NULL };
    const struct process_spec spec = plain_process(argv);

    return start(box, &spec);
}

int try_start(struct sandbox *box, const char *const *argv, const char *cwd)
{
    struct process_spec spec = plain_process(argv);
    AUTO(process_close) struct process process = PROCESS_INIT;

    spec.cwd = cwd;
    return sandbox_start(box, &spec, &process, &err);
}

bool is_readable(int fd)
{
    struct pollfd ready = { .fd = fd, .events = POLLIN };

    return poll(&ready, 1, 0) > 0;
}

static void await_readable(int fd, uint64_t deadline_ns)
{
    struct pollfd ready = { .fd = fd, .events = POLLIN };

    if (poll(&ready, 1, clock_poll_ms(deadline_ns)) != 1)
        test_fail(__FILE__, __LINE__, "waited too long");
}

struct sandbox_event await_event(struct sandbox *box)
{
    struct sandbox_event event = { .kind = EVENT_NONE };

    await_readable(box->event_fd, clock_ns() + PATIENCE_NS);
    if (sandbox_next_event(box, &event, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.message);
    return event;
}

/* One read; returns whether there may be more. The end of a terminal reads as EIO. */
static bool read_some(int fd, struct buf *buf)
{
    char data[65536];
    ssize_t n = read(fd, data, sizeof(data));

    if (n < 0 && errno != EIO)
        test_fail(__FILE__, __LINE__, "read: %s", strerror(errno));
    if (n > 0)
        buf_add(buf, data, (size_t)n);
    return n > 0;
}

void read_to_end(int fd, struct buf *buf)
{
    const uint64_t deadline = clock_ns() + PATIENCE_NS;

    do {
        await_readable(fd, deadline);
    } while (read_some(fd, buf));
}

void read_until(int fd, struct buf *buf, const char *text)
{
    const uint64_t deadline = clock_ns() + PATIENCE_NS;

    while (!buf->data || !strstr(buf->data, text)) {
        await_readable(fd, deadline);
        if (!read_some(fd, buf))
            test_fail(__FILE__, __LINE__, "the stream ended before '%s'", text);
    }
}

/* Both streams at once: a program may fill one while only the other is read. */
struct outcome finish(struct sandbox *box, struct process *process)
{
    struct outcome outcome = { .out = BUF_INIT(64U << 20), .err = BUF_INIT(64U << 20) };
    struct pollfd fds[] = {
        { .fd = process->stdout_fd, .events = POLLIN },
        { .fd = process->stderr_fd, .events = POLLIN },
    };
    const uint64_t deadline = clock_ns() + PATIENCE_NS;

    while (fds[0].fd >= 0 || fds[1].fd >= 0) {
        if (poll(fds, 2, clock_poll_ms(deadline)) < 1)
            test_fail(__FILE__, __LINE__, "waited too long for the streams' end");
        if (fds[0].revents && !read_some(fds[0].fd, &outcome.out))
            fds[0].fd = -1;
        if (fds[1].revents && !read_some(fds[1].fd, &outcome.err))
            fds[1].fd = -1;
    }
    const struct sandbox_event event = await_event(box);
    CHECK_EQ(event.kind, EVENT_EXITED);
    CHECK_EQ(event.process, process->id);
    outcome.status = event.wait_status;
    process_close(*process);
    *process = PROCESS_INIT;
    buf_add(&outcome.out, "", 0); /* so that data is a string even if nothing was read */
    buf_add(&outcome.err, "", 0);
    return outcome;
}

struct outcome run_shell(struct sandbox *box, const char *line)
{
    struct process process = start_shell(box, line);

    return finish(box, &process);
}

void outcome_finish(struct outcome outcome)
{
    buf_finish(outcome.out);
    buf_finish(outcome.err);
}

int count_descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int n = 0;

    CHECK(dir);
    while (readdir(dir))
        n++;
    CHECK_EQ(closedir(dir), 0);
    return n;
}
