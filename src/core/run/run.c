/*
 * run.c - the verb: one program, from options to result.
 *
 * create, start, follow. Whatever happened, the sandbox is stopped as a whole before the rest
 * of its output is read, so nothing that a program left running can hold us.
 */
#include "core/run/run.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/options.h"
#include "core/disk/disk.h"
#include "core/disk/image.h"
#include "core/record/recorder.h"
#include "core/record/runs.h"
#include "core/request/hint.h"
#include "core/request/image_root.h"
#include "core/request/spec.h"
#include "core/request/take.h"
#include "core/result/artifacts.h"
#include "core/result/capture.h"
#include "core/result/result.h"
#include "core/run/follow.h"
#include "core/run/guest.h"
#include "core/run/session.h"
#include "policy/policy.h"
#include "runtime/runtime.h"
#include <carrel/run.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define NS_PER_MS UINT64_C(1000000)
#define BYTES_PER_GB (1ULL << 30)

struct run {
    struct session session;
    const struct carrel_run_options *options; /* of the session */
    const struct run_guest *language;         /* NULL: the program is all there is */
    struct guest guest;
    struct process process;
    struct output output;
    struct follow follow;
};

/* An image may have a program of its own. */
static int check_program(const struct carrel_run_options *o, struct carrel_error *err)
{
    if (!o->argv || !o->argv[0] || !o->argv[0][0])
        return err_set(err, -EINVAL, "no program to run");
    return 0;
}

static int start(struct run *run, struct carrel_error *err)
{
    const struct carrel_run_options *o = run->options;
    AUTO(environment_free) char **env = NULL;

    int r = environment_make(run->session.box, o->env, o->has_tty, &env, err);
    if (r == 0)
        r = recorder_start(&run->session.recorder, o->argv[0], err);
    if (r < 0)
        return r;
    const struct process_spec spec = {
        .argv = o->argv,
        .env = (const char *const *)env,
        .cwd = o->cwd,
        .has_stdin = o->stdin_fd >= 0,
        .ends_sandbox = true,
        .has_tty = o->has_tty,
        .rows = o->rows,
        .cols = o->cols,
        .n_extra = run->language ? PROCESS_EXTRA : 0,
    };
    r = sandbox_start(run->session.box, &spec, &run->process, err);
    if (r == -ENOENT && !o->root &&
            !run->session.root) /* the hint is about programs of the host */
        return hint_missing_program(o->argv[0], err);
    if (r < 0)
        return r;
    /* Reading must never block: after the end there may be nothing left to read. */
    r = fd_set_nonblocking(run->process.stdout_fd);
    if (r == 0 && run->process.stderr_fd >= 0)
        r = fd_set_nonblocking(run->process.stderr_fd);
    if (r == 0 && run->process.stdin_fd >= 0)
        r = fd_set_nonblocking(run->process.stdin_fd);
    return r < 0 ? err_set_errno(err, r, "streams") : 0;
}

/* Whether code, result and whole output are kept of a run that ended like this. */
static bool wants_artifacts(const struct run *run)
{
    enum carrel_store store = run->options->store_code;

    if (!run->output.dir[0])
        return false;
    return store == CARREL_STORE_ALWAYS ||
           (store == CARREL_STORE_ON_ERROR && !result_is_ok(run->session.result));
}

static int keep_artifacts(struct run *run, struct carrel_error *err)
{
    struct carrel_run_result *result = run->session.result;
    const struct artifact_code argv = { .argv = run->options->argv };
    struct artifact kept[ARTIFACTS_MAX];
    size_t n;

    result->artifacts = strdup(run->output.dir);
    int r = result_write_json(result);
    if (r < 0)
        return err_set_errno(err, r, "result");
    r = artifacts_store(run->output.dir, result->run,
            run->session.request->code ? run->session.request->code : &argv, result->json.data,
            kept, &n, err);
    if (r == 0)
        r = recorder_artifacts(&run->session.recorder, kept, n, err);
    if (r == 0)
        runs_sweep_when_due(run->session.request->policy);
    return r;
}

/* Billionths; a figure that is not known costs nothing. */
static uint64_t price(const struct policy *policy, enum policy_key key, long double amount)
{
    return (uint64_t)((long double)policy_get(policy, key)->number * amount);
}

static void put_cost(struct carrel_run_result *r, const struct policy *policy)
{
    const struct policy_value *currency = policy_get(policy, POLICY_PRICE_CURRENCY);
    const struct sandbox_usage *u = &r->usage;
    long double cpu_s = u->cpu_ms == USAGE_UNKNOWN ? 0 : (long double)u->cpu_ms / 1000;
    long double gb = u->peak_memory_bytes == USAGE_UNKNOWN
                             ? 0
                             : (long double)u->peak_memory_bytes / BYTES_PER_GB;

    r->has_cost = policy_get(policy, POLICY_PRICE_RUN)->is_set ||
                  policy_get(policy, POLICY_PRICE_CPU)->is_set ||
                  policy_get(policy, POLICY_PRICE_MEMORY)->is_set;
    if (!r->has_cost)
        return;
    r->cost_nano = policy_get(policy, POLICY_PRICE_RUN)->number +
                   price(policy, POLICY_PRICE_CPU, cpu_s) +
                   price(policy, POLICY_PRICE_MEMORY, gb * (long double)r->duration_ms / 1000);
    (void)snprintf(
            r->currency, sizeof(r->currency), "%s", currency->is_set ? currency->text : "USD");
}

static void warn_near(struct carrel_run_result *r, const struct policy *policy,
        enum policy_key key, const char *what, uint64_t used, uint64_t limit)
{
    const struct policy_value *threshold = policy_get(policy, key);
    size_t at = strlen(r->warning);

    if (!threshold->is_set || used == USAGE_UNKNOWN || limit == 0)
        return;
    uint64_t percent = (uint64_t)((long double)used * 100 / (long double)limit);
    if (percent >= threshold->number && at < sizeof(r->warning))
        (void)snprintf(r->warning + at, sizeof(r->warning) - at,
                "%s%s at %" PRIu64 "%% of its limit", at ? ", " : "", what, percent);
}

/* What the run cost by the policy's prices, and which limits it came near by its thresholds. */
static void appraise(struct carrel_run_result *r, const struct policy *policy)
{
    uint64_t cpu_ms = r->limits[LIMIT_CPU] * r->duration_ms / 1000; /* that could be had */

    put_cost(r, policy);
    warn_near(r, policy, POLICY_MONITOR_MEMORY, "memory", r->usage.peak_memory_bytes,
            r->limits[LIMIT_MEMORY]);
    warn_near(r, policy, POLICY_MONITOR_CPU, "cpu", r->usage.cpu_ms, cpu_ms);
    warn_near(
            r, policy, POLICY_MONITOR_PIDS, "pids", r->usage.peak_pids, r->limits[LIMIT_PIDS]);
    warn_near(r, policy, POLICY_MONITOR_DISK, "disk", r->usage.written_bytes,
            r->limits[LIMIT_DISK]);
}

/* A shell reports the signal of its program as a status. */
static bool hit_file_limit(const struct follow *follow)
{
    return follow->has_status &&
           (WIFSIGNALED(follow->wait_status)
                           ? WTERMSIG(follow->wait_status) == SIGXFSZ
                           : WEXITSTATUS(follow->wait_status) == 128 + SIGXFSZ);
}

/* It may have ended by itself before the next look. */
static bool is_disk_full(struct run *run)
{
    struct session *session = &run->session;

    if (session->image >= 0 && disk_image_is_full(session->image))
        return true;
    return hit_file_limit(&run->follow) ? disk_is_over_exactly(&session->disk)
                                        : disk_is_over(&session->disk);
}

/* What the pipes still hold is output of the program, even if it was killed. */
static int finish(struct run *run, uint64_t began_ns, struct carrel_error *err)
{
    struct carrel_run_result *result = run->session.result;

    /* A workspace must not be in use afterwards; without one the kernel may clean up in
     * parallel. */
    int r = run->session.worktree ? sandbox_stop(run->session.box, &result->usage, err)
                                  : sandbox_end(run->session.box, &result->usage, err);
    if (r < 0)
        return r;
    result->duration_ms = (clock_ns() - began_ns) / NS_PER_MS;
    if (is_disk_full(run))
        result->usage.is_disk_full = true;
    if (!run->session.is_cancelled) {
        follow_conclude(&run->follow, result);
        /* All programs have ended; only a process that the caller forked can have the pipes. */
        run->follow.may_linger = true;
        follow_flush(&run->follow);
    }
    result->output_error = follow_output_error(&run->follow);
    output_take(&run->output, result);
    result_set_reason(result);
    guest_end(&run->guest);
    if (run->language)
        run->language->read_report(run->language->context,
                run->guest.has_findings ? &run->guest.findings : NULL, &run->guest.report,
                result);
    if (run->session.request->policy)
        appraise(result, run->session.request->policy);
    r = recorder_end(&run->session.recorder, result, err);
    if (r == 0)
        r = session_end_worktree(&run->session, err);
    if (r < 0)
        return r;

    bool is_kept = wants_artifacts(run);
    if (is_kept)
        r = output_keep(&run->output, err);
    output_name(&run->output, result);
    if (r == 0 && is_kept)
        r = keep_artifacts(run, err);
    if (r == 0)
        r = recorder_close(&run->session.recorder, result, err);
    if (r < 0)
        return r;
    memcpy(result->seal, run->session.recorder.seal, sizeof(result->seal));
    if (run->session.recorder.journal &&
            asprintf(&result->journal, "%s/journal.jsonl", run->output.dir) < 0)
        result->journal = NULL;
    r = result_write_json(result);
    if (r < 0)
        return err_set_errno(err, r, "result");
    return sandbox_stop(run->session.box, NULL, err); /* nothing is left when a run is over */
}

static struct run *run_new(const struct run_request *request)
{
    struct run *run = calloc(1, sizeof(*run));

    if (!run)
        return NULL;
    if (session_init(&run->session, request, NULL) < 0) {
        free(run);
        return NULL;
    }
    run->language = request->guest;
    if (run->language)
        run->guest = (struct guest){
            .task = run->language->task,
            .task_len = run->language->task_len,
            .findings = BUF_INIT(run->language->findings_max),
            .report = BUF_INIT(run->language->report_max),
        };
    run->options = run->session.options;
    run->process = PROCESS_INIT;
    run->follow.sinks[0] = run->follow.sinks[1] = -1;
    run->output = (struct output)OUTPUT_INIT;
    return run;
}

static void run_free(struct run *run)
{
    if (!run)
        return;
    process_close(run->process);
    follow_finish(&run->follow);
    guest_finish(&run->guest);
    session_finish(&run->session);
    output_finish(&run->output);
    free(run);
}
DEFINE_AUTO(struct run *, run_free)

static int follow(struct run *run, struct carrel_error *err)
{
    run->follow.options = run->options;
    run->follow.box = run->session.box;
    run->follow.process = &run->process;
    run->follow.disk = &run->session.disk;
    run->follow.out = &run->output.out;
    run->follow.err = &run->output.err;
    run->follow.cpu_milli = run->session.result->limits[LIMIT_CPU];
    run->follow.deadline_ns = clock_ns() + run->session.result->timeout_ms * NS_PER_MS;
    int r = follow_begin(&run->follow, err);
    if (r == 0 && run->language)
        r = guest_begin(&run->guest, &run->follow.loop, &run->process, err);
    return r < 0 ? r : follow_to_end(&run->follow, err);
}

/* From the first record to the last. */
static int execute(struct run *run, uint64_t began_ns, struct carrel_error *err)
{
    int r = output_open(&run->output, run->session.result, run->options->workspace,
            run->session.permit.output_file_bytes, err);

    if (r == 0)
        r = session_make(&run->session, err);
    if (r < 0)
        return session_drop(&run->session, r);
    if (!run->session.is_cancelled) {
        r = start(run, err);
        if (r < 0)
            return session_drop(&run->session, r);
        r = follow(run, err);
    }
    if (r == 0)
        r = finish(run, began_ns, err);
    return r;
}

int run_execute(const struct run_request *request, struct carrel_run_result **out,
        struct carrel_error *err)
{
    uint64_t began_ns = clock_ns();

    AUTO(run_free) struct run *run = run_new(request);
    if (!run)
        return err_set_errno(err, -ENOMEM, "run");

    int r = session_permit(&run->session, err);
    if (r == 0 && run->session.root)
        r = image_root_command(run->session.root, &run->session.permit.options, err);
    if (r == 0)
        r = check_program(run->options, err);
    if (r < 0)
        return r;
    r = execute(run, began_ns, err);
    if (r < 0) {
        session_abandon(&run->session, err);
        return r;
    }
    *out = ptr_steal(&run->session.result);
    return 0;
}

int run_load_policy(
        const struct carrel_run_options *options, struct policy **out, struct carrel_error *err)
{
    const struct policy_request request = {
        .file = options->policy,
        .profile = options->profile,
        .environment = (const char *const *)environ,
    };

    int r = policy_load(&request, out, err);
    return r;
}

int carrel_run(const struct carrel_run_options *options, struct carrel_run_result **out,
        struct carrel_error *err)
{
    AUTO(policy_free) struct policy *policy = NULL;
    struct taken_run own;

    err = ERR_OR_IGNORED(err);
    int r = take_run(&own, options, err);
    if (r == 0)
        r = run_load_policy(&own.options, &policy, err);
    if (r < 0)
        return r;
    const struct run_request request = { .options = &own.options, .policy = policy };
    return run_execute(&request, out, err);
}

int carrel_workspace_create(
        const struct carrel_workspace_options *options, char **name, struct carrel_error *err)
{
    static const char *const argv[] = { "true", NULL };
    struct carrel_run_options run = CARREL_RUN_OPTIONS_INIT;
    struct carrel_workspace_options kept = CARREL_WORKSPACE_OPTIONS_INIT;
    struct carrel_run_result *result = NULL;
    AUTO(buf_finish) struct buf text = BUF_INIT(2 * NAME_ID_MAX + 2);

    err = ERR_OR_IGNORED(err);
    int r = OPTIONS_TAKE(&kept, options, CARREL_WORKSPACE_OPTIONS_INIT, err);
    if (r < 0)
        return r;
    kept.on_success = kept.on_failure = CARREL_KEEP;
    run.argv = argv;
    run.workspace = &kept;
    r = carrel_run(&run, &result, err);
    if (r < 0)
        return r;
    if (carrel_run_result_status(result) != 0)
        r = err_set(err, -EIO, "make a workspace: %s", carrel_run_result_message(result));
    buf_addf(&text, "%s%s%s", result->task, result->task[0] ? "/" : "", result->run);
    carrel_run_result_free(result);
    return r < 0 ? r : buf_take(&text, name, err);
}
