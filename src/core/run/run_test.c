/*
 * A run whose runtime fails, once in each call that a run makes: before the effect of the call,
 * after it, and with the connection lost for good. Whatever fails, the caller gets the failed
 * operation's message, the journal is sealed and says so, and nothing is left.
 */
#include "base/fd.h"
#include "core/run/run.h"
#include "harness.h"
#include "only_journal.h"
#include "policy/policy.h"
#include "runtime/fake/fake.h"
#include "runtime/runtime.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* What a run is made of. Each program leaves a child, which has the FIFO open, too. */
struct scenario {
    const char *name;
    const char *line;
    uint64_t timeout_ms;
    bool has_guest; /* two more streams */
    enum carrel_reason reason;
};

static const struct scenario scenarios[] = {
    { "a program that exits", "exec 3>\"$FIFO\"; sleep 1000 & echo out", 0, false,
            CARREL_EXITED },
    { "a program that is killed for its time",
            "exec 3>\"$FIFO\"; trap '' TERM; sleep 1000 & while :; do wait; done", 50, false,
            CARREL_TIMEOUT },
    { "a guest",
            "read -r task <&3; echo \"$task\" >&4; read -r go <&3; echo report >&4;"
            "exec 3>\"$FIFO\"; sleep 1000 &",
            0, true, CARREL_EXITED },
};

/* Directories of one run, and the end of the FIFO that its programs write to. */
struct place {
    char top[64];
    char tmp[80];
    char fifo[80];
    char policy[80];
    int reader;
    int n_descriptors;
    char what[200]; /* for messages */
};

static int count_descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int n = 0;

    CHECK(dir);
    while (readdir(dir))
        n++;
    CHECK_EQ(closedir(dir), 0);
    return n;
}

static void place_begin(struct place *place)
{
    (void)snprintf(place->top, sizeof(place->top), "/tmp/run-test-XXXXXX");
    CHECK(test_mkdtemp(place->top));
    (void)snprintf(place->tmp, sizeof(place->tmp), "%s/tmp", place->top);
    CHECK_EQ(mkdir(place->tmp, 0700), 0);
    (void)snprintf(place->fifo, sizeof(place->fifo), "%s/fifo", place->top);
    CHECK_EQ(mkfifo(place->fifo, 0600), 0);
    (void)snprintf(place->policy, sizeof(place->policy), "%s/policy.yaml", place->top);
    CHECK_EQ(fd_write_new_text(AT_FDCWD, place->policy, "sandbox: {minimum_isolation: none}\n"),
            0);
    CHECK_EQ(setenv("XDG_STATE_HOME", place->top, 1), 0);
    CHECK_EQ(setenv("TMPDIR", place->tmp, 1), 0);
    place->reader = open(place->fifo, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    CHECK(place->reader >= 0);
    place->n_descriptors = count_descriptors();
}

/* The FIFO reads as ended when no process has it open to write. */
static void check_nothing_left(struct place *place)
{
    char byte;

    if (read(place->reader, &byte, 1) != 0)
        test_fail(__FILE__, __LINE__, "%s: a program still runs", place->what);
    if (waitpid(-1, NULL, __WALL | WNOHANG) != -1 || errno != ECHILD)
        test_fail(__FILE__, __LINE__, "%s: a process is left", place->what);
    if (rmdir(place->tmp) < 0)
        test_fail(__FILE__, __LINE__, "%s: a file is left: %s", place->what, strerror(errno));
    if (count_descriptors() != place->n_descriptors)
        test_fail(__FILE__, __LINE__, "%s: a descriptor is left", place->what);
    fd_close(fd_steal(&place->reader));
}

static void read_report(void *context, const struct buf *findings, const struct buf *report,
        struct carrel_run_result *result)
{
    (void)context;
    if (carrel_run_result_reason(result) == CARREL_INFRASTRUCTURE)
        return; /* any part of it may be lost */
    CHECK(findings);
    CHECK_MEM(findings->data, findings->len, "task", 4);
    CHECK_MEM(report->data, report->len, "report\n", 7);
}

static int run(const struct scenario *scenario, const struct place *place,
        struct carrel_run_result **out, struct carrel_error *err)
{
    const char *const argv[] = { "sh", "-c", scenario->line, NULL };
    char fifo[100];
    const char *const env[] = { fifo, NULL };
    struct carrel_run_options options = CARREL_RUN_OPTIONS_INIT;
    const struct run_guest guest = {
        .task = "task\n",
        .task_len = 5,
        .findings_max = 1000,
        .report_max = 1000,
        .read_report = read_report,
    };
    AUTO(policy_free) struct policy *policy = NULL;

    (void)snprintf(fifo, sizeof(fifo), "FIFO=%s", place->fifo);
    options.argv = argv;
    options.env = env;
    options.runtime = "fake";
    options.policy = place->policy;
    options.timeout_ms = scenario->timeout_ms;
    CHECK_EQ(run_load_policy(&options, &policy, err), 0);
    const struct run_request request = {
        .options = &options,
        .policy = policy,
        .guest = scenario->has_guest ? &guest : NULL,
    };
    return run_execute(&request, out, err);
}

/* How the run ends without a fault; counts the calls. */
static void run_well(const struct scenario *scenario, unsigned calls[static FAKE_OP_COUNT])
{
    struct place place = { .reader = -1 };
    struct carrel_error err = { 0 };
    struct carrel_run_result *result = NULL;

    place_begin(&place);
    (void)snprintf(place.what, sizeof(place.what), "%s", scenario->name);
    fake_inject(NULL);
    if (run(scenario, &place, &result, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s: %s", place.what, err.message);
    CHECK_EQ(carrel_run_result_reason(result), scenario->reason);
    carrel_run_result_free(result);
    check_nothing_left(&place);
    for (enum fake_op op = 0; op < FAKE_OP_COUNT; op++)
        calls[op] = fake_calls(op);
}

/*
 * A signal that does not arrive is followed by the end of the sandbox in any case. How often
 * events are asked for depends on the moments in which they come.
 */
static bool is_survived(const struct fake_fault *fault)
{
    return (fault->op == FAKE_SIGNAL && fault->kind != FAULT_LOST) ||
           (fault->op == FAKE_NEXT_EVENT && fake_calls(fault->op) < fault->nth);
}

static void run_badly(const struct scenario *scenario, const struct fake_fault *fault)
{
    static const char *const kinds[] = { "before its effect", "after its effect",
        "with the connection" };
    struct place place = { .reader = -1 };
    struct carrel_error err = { 0 };
    struct carrel_run_result *result = NULL;

    place_begin(&place);
    (void)snprintf(place.what, sizeof(place.what), "%s; call %u of %s fails %s", scenario->name,
            fault->nth, fake_op_name(fault->op), kinds[fault->kind]);
    fake_inject(fault);
    int r = run(scenario, &place, &result, &err);
    if (r == 0 && fault->kind == FAULT_LOST && !is_survived(fault)) {
        CHECK_EQ(carrel_run_result_reason(result), CARREL_INFRASTRUCTURE);
        carrel_run_result_free(result);
        only_journal_check(place.top, place.what, "infrastructure");
    } else if (is_survived(fault)) {
        if (r < 0)
            test_fail(__FILE__, __LINE__, "%s: %s", place.what, err.message);
        CHECK_EQ(carrel_run_result_reason(result), scenario->reason);
        carrel_run_result_free(result);
        only_journal_check(place.top, place.what,
                scenario->reason == CARREL_TIMEOUT ? "timeout" : "exited");
    } else {
        if (r != fault->code)
            test_fail(__FILE__, __LINE__, "%s: it returned %d: %s", place.what, r, err.message);
        CHECK(!result);
        CHECK_EQ(err.code, r);
        if (!strstr(err.message, "runtime fake: ") ||
                (fault->kind != FAULT_LOST && !strstr(err.message, fake_op_name(fault->op))))
            test_fail(__FILE__, __LINE__, "%s: the message is: %s", place.what, err.message);
        only_journal_check(place.top, place.what, "infrastructure");
    }
    check_nothing_left(&place);
}

static void fail_each(enum fault_kind kind)
{
    unsigned calls[FAKE_OP_COUNT];

    for (size_t i = 0; i < ARRAY_LEN(scenarios); i++) {
        run_well(&scenarios[i], calls);
        CHECK(calls[FAKE_CREATE] > 0 && calls[FAKE_START] > 0 && calls[FAKE_END] > 0);
        CHECK_EQ(calls[FAKE_SIGNAL] > 0, scenarios[i].timeout_ms > 0);
        for (enum fake_op op = 0; op < FAKE_OP_COUNT; op++)
            for (unsigned nth = 1; nth <= calls[op]; nth++) {
                const struct fake_fault fault = { op, nth, kind, -EIO };
                run_badly(&scenarios[i], &fault);
            }
    }
}

TEST(a_call_that_fails_without_effect_ends_the_run_and_leaves_nothing)
{
    fail_each(FAULT_BEFORE);
}

TEST(a_call_whose_answer_is_lost_ends_the_run_and_leaves_nothing)
{
    fail_each(FAULT_AFTER);
}

TEST(a_connection_that_is_lost_ends_the_run_and_leaves_nothing)
{
    fail_each(FAULT_LOST);
}
