/* test.c - carrel test. */
#include "base/auto.h"
#include "base/clock.h"
#include "base/json.h"
#include "cli/args/report_args.h"
#include "cli/commands.h"
#include "cli/print/report.h"
#include <carrel/host.h>
#include <stdio.h>

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

/* What a report needs of the tests so far. */
struct tally {
    unsigned n[3]; /* by outcome */
    struct json json;
};

static void print_row(const struct carrel_test_info *test)
{
    static const char *const words[] = {
        [CARREL_TEST_PASSED] = "pass",
        [CARREL_TEST_FAILED] = "FAIL",
        [CARREL_TEST_SKIPPED] = "skip",
    };

    printf("  %-8s %-36s %s  %s\n", test->group, test->name, words[test->outcome], test->seen);
    (void)fflush(stdout); /* one by one; report_finish() asks whether all of it got through */
}

static void write_row(struct json *json, const struct carrel_test_info *test)
{
    static const char *const outcomes[] = {
        [CARREL_TEST_PASSED] = "passed",
        [CARREL_TEST_FAILED] = "failed",
        [CARREL_TEST_SKIPPED] = "skipped",
    };

    json_object(json, NULL);
    json_str(json, "group", test->group);
    json_str(json, "name", test->name);
    json_str(json, "outcome", outcomes[test->outcome]);
    json_str(json, "seen", test->seen);
    json_u64(json, "duration_ms", test->duration_ms);
    json_end_object(json);
}

static int visit(const struct carrel_test_info *test, void *context)
{
    struct tally *tally = context;

    tally->n[test->outcome]++;
    if (tally->json.out)
        write_row(&tally->json, test);
    else
        print_row(test);
    return 0;
}

static int run_json(const struct carrel_test_options *options)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(1U << 20);
    struct tally tally = { .json = { .out = &text } };
    struct json *json = &tally.json;
    struct carrel_error err = { 0 };

    json_object(json, NULL);
    json_array(json, "tests");
    if (carrel_host_test(options, visit, &tally, &err) < 0)
        return report_error(STATUS_FAILED, &err);
    json_end_array(json);
    json_u64(json, "passed", tally.n[CARREL_TEST_PASSED]);
    json_u64(json, "failed", tally.n[CARREL_TEST_FAILED]);
    json_u64(json, "skipped", tally.n[CARREL_TEST_SKIPPED]);
    json_bool(json, "ok", tally.n[CARREL_TEST_FAILED] == 0);
    json_end_object(json);
    return report_print_json(&text, tally.n[CARREL_TEST_FAILED] ? STATUS_SOME_FAILED : 0);
}

static int run_text(const struct carrel_test_options *options)
{
    struct carrel_error err = { 0 };
    struct tally tally = { 0 };
    uint64_t began_ns = clock_ns();

    if (carrel_host_test(options, visit, &tally, &err) < 0)
        return report_error(STATUS_FAILED, &err);
    printf("\n%u passed, %u failed, %u skipped in %.1f s\n", tally.n[CARREL_TEST_PASSED],
            tally.n[CARREL_TEST_FAILED], tally.n[CARREL_TEST_SKIPPED],
            (double)(clock_ns() - began_ns) / 1e9);
    return report_finish(tally.n[CARREL_TEST_FAILED] ? STATUS_SOME_FAILED : 0);
}

int cmd_test(int argc, char **argv)
{
    struct carrel_test_options options = CARREL_TEST_OPTIONS_INIT;
    struct report_args args;

    int r = report_args_parse(rows, ARRAY_LEN(rows), help, argc, argv, &args);
    if (r != 0)
        return r < 0 ? STATUS_FAILED : 0;
    options.runtime = args.runtime;
    return args.is_json ? run_json(&options) : run_text(&options);
}
