/* Each call of the port is passed on and leaves one line; tests/contract runs through it, too.
 */
#include "base/err.h"
#include "base/fd.h"
#include "harness.h"
#include "runtime/runtime.h"
#include "runtime/traced.h"
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct carrel_error err;

/* The lines so far, with each time replaced by "T". */
static const char *lines(int fd)
{
    static char text[8192];
    static char out[8192];
    char *to = out;

    ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
    CHECK(n >= 0);
    text[n] = '\0';
    for (const char *at = text; *at; at++) {
        size_t digits = at > text && at[-1] == ' ' ? strspn(at, "0123456789") : 0;
        if (digits > 0 && strncmp(at + digits, "us\n", 3) == 0) {
            *to++ = 'T';
            at += digits + 1;
        } else {
            *to++ = *at;
        }
    }
    *to = '\0';
    return out;
}

TEST(each_call_is_passed_on_and_leaves_a_line)
{
    const char *const argv[] = { "sh", "-c", "echo $$; exit 7", NULL };
    const char *const missing[] = { "no\nsuch", NULL };
    const char *const env[] = { "PATH=/usr/bin:/bin", NULL };
    const struct process_spec good = { .argv = argv, .env = env };
    const struct process_spec bad = { .argv = missing, .env = env };
    const struct sandbox_spec spec = { .id = "x", .network = NETWORK_HOST };
    struct runtime *process = NULL;
    struct sandbox *box = NULL;
    struct process started = PROCESS_INIT;
    struct sandbox_event event = { .kind = EVENT_NONE };
    char text[32];

    AUTO(fd_close) int fd = memfd_create("trace", MFD_CLOEXEC);
    CHECK(fd >= 0);
    CHECK_EQ(runtime_find("process", &process, &err), 0);
    struct runtime *traced = runtime_traced(process, fd);
    CHECK(traced);
    CHECK_STR(runtime_name(traced), "process");
    CHECK_EQ(runtime_can(traced), runtime_can(process));
    CHECK_EQ(sandbox_create(traced, &spec, &box, &err), 0);
    CHECK_EQ(sandbox_start(box, &bad, &started, &err), -ENOENT);
    CHECK_EQ(sandbox_start(box, &good, &started, &err), 0);
    CHECK(fd_read_all(started.stdout_fd, text, sizeof(text)) > 0);
    process_close(started);
    struct pollfd ended = { .fd = box->event_fd, .events = POLLIN };
    CHECK_EQ(poll(&ended, 1, 20000), 1);
    CHECK_EQ(sandbox_next_event(box, &event, &err), 0);
    CHECK_EQ(event.wait_status, 7 << 8);
    CHECK_EQ(sandbox_pause(box, &err), -ENOTSUP); /* not passed on: it has none */
    CHECK_STR(err.message, "runtime process: cannot pause a sandbox");
    sandbox_free(box);
    runtime_traced_free(traced);
    CHECK_STR(lines(fd), "create 'x' mounts 0 = 0 T\n"
                         "start 'no\\x0asuch' = ENOENT T\n"
                         "start 'sh' '-c' 'echo $$; exit 7' -> process 1 = 0 T\n"
                         "next_event -> process 1 exited 0x700 = 0 T\n"
                         "stop = 0 T\n"
                         "free = 0 T\n");
}

/* A slot of the table that was forgotten would be an operation that is lost. */
TEST(every_operation_that_the_inner_one_has_is_there)
{
    struct runtime *inner;

    for (size_t i = 0; (inner = runtime_at(i)) != NULL; i++) {
        struct runtime *traced = runtime_traced(inner, -1);
        CHECK(traced);
        const unsigned char *theirs = (const unsigned char *)inner->ops;
        const unsigned char *ours = (const unsigned char *)traced->ops;
        for (size_t at = 0; at < sizeof(struct runtime_ops); at += sizeof(void *)) {
            static const unsigned char none[sizeof(void *)];
            CHECK_EQ(memcmp(theirs + at, none, sizeof(none)) == 0,
                    memcmp(ours + at, none, sizeof(none)) == 0);
        }
        runtime_traced_free(traced);
    }
}
