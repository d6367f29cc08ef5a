/* test.c - carrel test. */
#include "base/auto.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "cli/args/report_args.h"
#include "cli/commands.h"
#include "cli/print/report.h"
#include "core/host/selftest.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

static const char help[] =
        "Usage: carrel test [options]\n\n"
        "Tests the sandbox on this machine: runs small programs, exceeds each limit, and\n"
        "tries to escape. Takes a few seconds; the attempts are harmless even where they\n"
        "succeed. Exit status: 0 if nothing failed, otherwise 1.";

static const struct option_row rows[] = {
    { "runtime", "NAME",
            "local (default), or process, where most tests fail: it isolates nothing",
            .take = report_take_runtime },
    REPORT_JSON,
    REPORT_HELP,
};

enum { STATUS_SOME_FAILED = 1 };

struct tally {
    unsigned n[3]; /* by outcome */
};

static const char *const words[] = {
    [SELFTEST_PASSED] = "pass",
    [SELFTEST_FAILED] = "FAIL",
    [SELFTEST_SKIPPED] = "skip",
};

static void print_row(const struct selftest_row *row)
{
    printf("  %-8s %-36s %s  %s\n", row->group, row->name, words[row->outcome], row->seen);
    (void)fflush(stdout); /* one by one; report_finish() asks whether all of it got through */
}

static void write_row(struct json *json, const struct selftest_row *row)
{
    static const char *const outcomes[] = { "passed", "failed", "skipped" };

    json_object(json, NULL);
    json_str(json, "group", row->group);
    json_str(json, "name", row->name);
    json_str(json, "outcome", outcomes[row->outcome]);
    json_str(json, "seen", row->seen);
    json_u64(json, "duration_ms", row->duration_ms);
    json_end_object(json);
}

static int run_json(struct selftest *test)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(1U << 20);
    struct json json = { .out = &text };
    struct selftest_row row;
    struct tally tally = { 0 };

    json_object(&json, NULL);
    json_array(&json, "tests");
    while (selftest_next(test, &row)) {
        tally.n[row.outcome]++;
        write_row(&json, &row);
    }
    json_end_array(&json);
    json_u64(&json, "passed", tally.n[SELFTEST_PASSED]);
    json_u64(&json, "failed", tally.n[SELFTEST_FAILED]);
    json_u64(&json, "skipped", tally.n[SELFTEST_SKIPPED]);
    json_bool(&json, "ok", tally.n[SELFTEST_FAILED] == 0);
    json_end_object(&json);
    return report_print_json(&text, tally.n[SELFTEST_FAILED] ? STATUS_SOME_FAILED : 0);
}

static int run_text(struct selftest *test)
{
    struct selftest_row row;
    struct tally tally = { 0 };
    uint64_t began_ns = clock_ns();

    while (selftest_next(test, &row)) {
        tally.n[row.outcome]++;
        print_row(&row);
    }
    printf("\n%u passed, %u failed, %u skipped in %.1f s\n", tally.n[SELFTEST_PASSED],
            tally.n[SELFTEST_FAILED], tally.n[SELFTEST_SKIPPED],
            (double)(clock_ns() - began_ns) / 1e9);
    return report_finish(tally.n[SELFTEST_FAILED] ? STATUS_SOME_FAILED : 0);
}

int cmd_test(int argc, char **argv)
{
    struct carrel_error err = { 0 };
    AUTO(selftest_free) struct selftest *test = NULL;
    struct report_args args;
    char own[PATH_MAX];

    int r = report_args_parse(rows, ARRAY_LEN(rows), help, argc, argv, &args);
    if (r != 0)
        return r < 0 ? STATUS_FAILED : 0;
    ssize_t n = readlink("/proc/self/exe", own, sizeof(own) - 1);
    if (n < 0) {
        (void)err_set_errno(&err, -errno, "find carrel's own executable");
        return report_error(STATUS_FAILED, &err);
    }
    own[n] = '\0';
    if (selftest_new(args.runtime, own, &test, &err) < 0)
        return report_error(STATUS_FAILED, &err);
    return args.is_json ? run_json(test) : run_text(test);
}
