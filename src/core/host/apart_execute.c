/* apart_execute.c - carrel host: the process that answers. */
#include "base/auto.h"
#include "base/err.h"
#include "base/fd.h"
#include "core/host/apart.h"
#include "core/host/health.h"
#include "core/host/selftest.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

static int answer(enum apart_what what, const void *data, size_t len)
{
    const struct apart_head head = { .what = (uint32_t)what, .len = (uint32_t)len };

    int r = fd_write_all(APART_FD, &head, sizeof(head));
    return r < 0 || len == 0 ? r : fd_write_all(APART_FD, data, len);
}

static int answer_health(void)
{
    AUTO(free) struct health *health = calloc(1, sizeof(*health)); /* the padding is zero */

    if (!health)
        return -ENOMEM;
    health_check(health);
    return answer(APART_DATA, health, sizeof(*health));
}

static int answer_test(const struct selftest_row *row)
{
    struct apart_test test;

    memset(&test, 0, sizeof(test)); /* the padding, too */
    (void)snprintf(test.group, sizeof(test.group), "%s", row->group);
    (void)snprintf(test.name, sizeof(test.name), "%s", row->name);
    (void)snprintf(test.seen, sizeof(test.seen), "%s", row->seen);
    test.outcome = (uint32_t)row->outcome;
    test.duration_ms = row->duration_ms;
    return answer(APART_DATA, &test, sizeof(test));
}

static int run_tests(const char *runtime, struct carrel_error *err)
{
    AUTO(selftest_free) struct selftest *test = NULL;
    struct selftest_row row;
    char own[PATH_MAX];

    ssize_t n = readlink("/proc/self/exe", own, sizeof(own) - 1);
    if (n < 0)
        return err_set_errno(err, -errno, "find carrel's own executable");
    own[n] = '\0';
    int r = selftest_new(runtime[0] ? runtime : NULL, own, &test, err);
    while (r == 0 && selftest_next(test, &row))
        r = answer_test(&row);
    return r;
}

static int serve(const struct apart_request *request, struct carrel_error *err)
{
    if (strncmp(request->version, CARREL_VERSION, sizeof(request->version)) != 0)
        return err_set(err, -EPROTO,
                "libcarrel is of version %.15s, and the program carrel of " CARREL_VERSION,
                request->version);
    switch (request->kind) {
    case APART_HEALTH:
        return answer_health();
    case APART_TEST:
        return run_tests(request->runtime, err);
    default:
        return err_set(err, -EPROTO, "unknown question %u", request->kind);
    }
}

int apart_execute(void)
{
    struct apart_request request;
    struct carrel_error err = { 0 };

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (fd_read_all(APART_FD, &request, sizeof(request)) != sizeof(request) ||
            getppid() != request.parent || fcntl(APART_FD, F_SETFD, FD_CLOEXEC) < 0)
        return 1;
    request.runtime[sizeof(request.runtime) - 1] = '\0';
    if (serve(&request, &err) == 0)
        return answer(APART_END, NULL, 0) < 0;
    return err.code < 0 ? answer(APART_FAILED, &err, sizeof(err)) < 0 : 1;
}
