/* selftest_ask.c - the self-test for callers of the library. */
#include "base/auto.h"
#include "base/err.h"
#include "base/options.h"
#include "core/host/apart.h"
#include "core/host/selftest.h"
#include <carrel/host.h>
#include <errno.h>

struct walk {
    struct apart_test test;
    int (*visit)(const struct carrel_test_info *info, void *context);
    void *context;
};

static enum carrel_test_outcome outcome_of(uint32_t outcome)
{
    switch (outcome) {
    case SELFTEST_PASSED:
        return CARREL_TEST_PASSED;
    case SELFTEST_SKIPPED:
        return CARREL_TEST_SKIPPED;
    default:
        return CARREL_TEST_FAILED;
    }
}

static int take(void *context)
{
    const struct walk *walk = context;
    const struct apart_test *test = &walk->test;
    const struct carrel_test_info info = {
        .size = sizeof(info),
        .group = test->group,
        .name = test->name,
        .outcome = outcome_of(test->outcome),
        .seen = test->seen,
        .duration_ms = test->duration_ms,
    };

    return walk->visit(&info, walk->context);
}

int carrel_host_test(const struct carrel_test_options *options,
        int (*visit)(const struct carrel_test_info *info, void *context), void *context,
        struct carrel_error *err)
{
    struct carrel_test_options own = CARREL_TEST_OPTIONS_INIT;
    struct walk walk = { .visit = visit, .context = context };

    err = ERR_OR_IGNORED(err);
    int r = OPTIONS_TAKE(&own, options, CARREL_TEST_OPTIONS_INIT, err);
    if (r < 0)
        return r;
    const struct apart_question question = {
        .kind = APART_TEST,
        .runtime = own.runtime,
        .data = &walk.test,
        .len = sizeof(walk.test),
        .take = take,
        .context = &walk,
    };
    return apart_ask(&question, err);
}
