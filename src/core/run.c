/*
 * run.c - the verb: one program, from options to result.
 *
 * create, start, follow. Whatever happened, the sandbox is stopped as a whole before the rest
 * of its output is read, so nothing that a program left running can hold us.
 */
#include "core/run.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "core/appraise.h"
#include "core/artifacts.h"
#include "core/disk_watch.h"
#include "core/environment.h"
#include "core/evidence.h"
#include "core/follow.h"
#include "core/hint.h"
#include "core/outcome.h"
#include "core/output.h"
#include "core/permit.h"
#include "core/result.h"
#include "core/runs.h"
#include "core/spec.h"
#include "core/state.h"
#include "core/workplace.h"
#include "policy/policy.h"
#include "runtime/runtime.h"
#include "workspace/renew.h"
#include <carrel/run.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_TIMEOUT_MS 300000U
#define DEFAULT_OUTPUT_BYTES (10U << 10)
#define NS_PER_MS UINT64_C(1000000)

struct run {
    const struct run_request *request;
    const struct run_guest *guest;            /* NULL: the program is all there is */
    struct permit permit;                     /* what was asked for, under the policy */
    const struct carrel_run_options *options; /* of the permit */
    struct evidence evidence;
    bool has_evidence; /* it was begun */
    struct carrel_run_result *result;
    struct workplace *place; /* NULL: the run has no workspace of its own */
    struct disk_watch watch;
    struct runtime *runtime;
    struct sandbox *box;
    struct process process;
    struct output output;
    struct follow follow;
};

static int check_options(const struct carrel_run_options *o, struct carrel_error *err)
{
    if (o->size != sizeof(*o))
        return err_set(err, -EINVAL,
                "struct carrel_run_options has another size than this library's; start from "
                "CARREL_RUN_OPTIONS_INIT");
    if (!o->argv || !o->argv[0] || !o->argv[0][0])
        return err_set(err, -EINVAL, "no program to run");
    return 0;
}

/* These codes speak of the program alone; here it was something else. */
static int not_the_program(int code, struct carrel_error *err)
{
    if (code == -ENOENT || code == -EACCES || code == -EISDIR || code == -ENOEXEC)
        err->code = -EINVAL;
    return err->code;
}

/* Makes or takes up the run's workspace; its mounts come after the caller's. */
static int open_place(struct run *run, struct spec *spec, struct carrel_error *err)
{
    struct carrel_run_result *result = run->result;
    const struct workplace_request request = {
        .options = run->options->workspace,
        .runtime = spec->runtime,
        .spec = &spec->box,
        .policy = run->request->policy,
        .task = result->task,
        .run = result->run,
    };

    int r = workplace_open(&request, &run->place, err);
    if (r == 0)
        r = spec_add_mounts(spec, run->place->mounts, run->place->n_mounts, err);
    if (r == 0)
        r = workspace_begin_use(run->place->ws, err);
    if (r == 0)
        r = disk_watch_begin(
                &run->watch, run->place->ws->dir, spec->box.limits.value[LIMIT_DISK], err);
    return r;
}

/* The first record, if it is not written yet. */
static int begin_evidence(struct run *run, struct carrel_error *err)
{
    if (run->has_evidence || !run->request->policy)
        return 0;
    run->has_evidence = true;
    return evidence_begin(&run->evidence, run->result, &run->permit, run->request->policy,
            run->request->code, err);
}

/* Whoever needs the sandbox before the program, or another one without it, must wait for it. */
static bool must_stand(const struct run *run)
{
    const char *const *fallback = run->permit.fallback;

    return run->guest || (fallback && fallback[0]);
}

static int make_sandbox(struct run *run, const struct spec *spec, struct carrel_error *err)
{
    int r = must_stand(run) ? sandbox_create(spec->runtime, &spec->box, &run->box, err)
                            : sandbox_begin(spec->runtime, &spec->box, &run->box, err);

    if (r == 0)
        r = begin_evidence(run, err);
    if (r == 0 && run->guest)
        r = run->guest->prepare(run->guest->context, run->box, err);
    return r;
}

/*
 * No program is run, nothing is made for it and no other way is taken before the journal says
 * what was asked for. An empty sandbox is none of these: where it is all there is to make, the
 * journal is begun while it is being made.
 */
static int create(struct run *run, struct carrel_error *err)
{
    struct carrel_run_result *result = run->result;
    AUTO(spec_finish) struct spec spec = { 0 };

    int r = run->options->workspace || must_stand(run) ? begin_evidence(run, err) : 0;
    if (r == 0)
        r = spec_make(run->options, result->run, &spec, err);
    if (r == 0 && run->options->workspace)
        r = open_place(run, &spec, err);
    if (r == 0 && run->place)
        r = evidence_workspace(&run->evidence, run->place, err);
    if (r == 0)
        r = make_sandbox(run, &spec, err);
    run->watch.box = run->box;
    if (r < 0)
        return r;
    run->runtime = spec.runtime;

    result->runtime = runtime_name(spec.runtime);
    result->isolation = runtime_isolation(spec.runtime);
    result->protections = run->box->protections;
    memcpy(result->held_by, run->box->held_by, sizeof(result->held_by));
    memcpy(result->limits, spec.box.limits.value, sizeof(result->limits));
    result_note_limits(result);
    result->workspace = strdup(run->box->workspace);
    if (!result->workspace)
        return err_set_errno(err, -ENOMEM, "result");
    return evidence_sandbox(&run->evidence, result, err);
}

/* No program ran: a workspace made for it holds nothing. */
static int drop_place(struct run *run, int code)
{
    if (!run->place)
        return code;
    sandbox_free(ptr_steal(&run->box));
    if (!run->options->workspace->resume)
        (void)workplace_discard(run->place, true, NULL); /* else swept */
    workplace_free(ptr_steal(&run->place));
    return code;
}

/* The runtime of the policy, or the next on its list that isolates enough. */
static int create_or_fall_back(struct run *run, struct carrel_error *err)
{
    const char *const *next = run->permit.fallback;
    const char *first = run->options->runtime;

    int r = create(run, err);
    for (; r == -ENOTSUP && next && *next; next++) {
        if (policy_runtime_isolation(*next) < (int)run->permit.least_isolation)
            continue;
        (void)drop_place(run, r);
        struct carrel_error why = *err;
        r = evidence_fallback(&run->evidence, run->options->runtime, *next, why.message, err);
        if (r < 0)
            return r;
        run->permit.options.runtime = *next;
        run->result->fallback_from = first;
        r = create(run, err);
    }
    return r;
}

static int start(struct run *run, struct carrel_error *err)
{
    const struct carrel_run_options *o = run->options;
    AUTO(environment_free) char **env = NULL;

    int r = environment_make(run->box, o->env, o->has_tty, &env, err);
    if (r == 0)
        r = evidence_start(&run->evidence, o->argv[0], err);
    if (r < 0)
        return not_the_program(r, err);
    const struct process_spec spec = {
        .argv = o->argv,
        .env = (const char *const *)env,
        .cwd = o->cwd,
        .has_stdin = o->stdin_fd >= 0,
        .ends_sandbox = true,
        .has_tty = o->has_tty,
        .rows = o->rows,
        .cols = o->cols,
    };
    r = sandbox_start(run->box, &spec, &run->process, err);
    if (r == -ENOENT && !o->root) /* what another root lacks, the host cannot lend */
        return hint_missing_program(o->argv[0], err);
    if (r < 0)
        return r;
    /* Reading must never block: after the end there may be nothing left to read. */
    r = fd_set_nonblocking(run->process.stdout_fd);
    if (r == 0 && run->process.stderr_fd >= 0)
        r = fd_set_nonblocking(run->process.stderr_fd);
    if (r == 0 && run->process.stdin_fd >= 0)
        r = fd_set_nonblocking(run->process.stdin_fd);
    return r < 0 ? not_the_program(err_set_errno(err, r, "streams"), err) : 0;
}

/* The sandbox is gone; what becomes of the workspace depends on how the program ended. */
static int end_place(struct run *run, struct carrel_error *err)
{
    struct carrel_run_result *result = run->result;
    const struct carrel_workspace_options *o = run->options->workspace;
    bool is_success = result_is_ok(result);
    enum carrel_outcome_action action = is_success ? o->on_success : o->on_failure;

    /* What is committed carries the seal of all that led to it. */
    int r = action == CARREL_COMMIT
                    ? evidence_seal(&run->evidence, reason_name(result->reason), err)
                    : 0;
    if (r == 0)
        r = outcome_reach(run->place, run->runtime, action, run->evidence.seal,
                result->limits[LIMIT_DISK], &result->outcome, err);
    if (r < 0)
        return r;
    outcome_write_text(result->outcome, result->run, &result->summary);
    return evidence_outcome(&run->evidence, result->outcome, err);
}

/* Whether code, result and whole output are kept of a run that ended like this. */
static bool wants_artifacts(const struct run *run)
{
    enum carrel_store store = run->options->store_code;

    if (!run->output.dir[0])
        return false;
    return store == CARREL_STORE_ALWAYS ||
           (store == CARREL_STORE_ON_ERROR && !result_is_ok(run->result));
}

static int keep_artifacts(struct run *run, struct carrel_error *err)
{
    struct carrel_run_result *result = run->result;
    const struct artifact_code argv = { .argv = run->options->argv };
    struct artifact kept[ARTIFACTS_MAX];
    size_t n;

    result->artifacts = strdup(run->output.dir);
    int r = result_write_json(result);
    if (r < 0)
        return err_set_errno(err, r, "result");
    r = artifacts_store(run->output.dir, result->run,
            run->request->code ? run->request->code : &argv, result->json.data, kept, &n, err);
    if (r == 0)
        r = evidence_artifacts(&run->evidence, kept, n, err);
    if (r == 0)
        runs_sweep_when_due(run->request->policy);
    return r;
}

/* What the pipes still hold is the program's last word also when it was killed. */
static int finish(struct run *run, uint64_t began_ns, struct carrel_error *err)
{
    struct carrel_run_result *result = run->result;
    const struct follow *follow = &run->follow;

    /* A workspace must be in nobody's hands; else the kernel may tidy up beside the rest. */
    int r = run->place ? sandbox_stop(run->box, &result->usage, err)
                       : sandbox_end(run->box, &result->usage, err);
    if (r < 0)
        return r;
    result->duration_ms = (clock_ns() - began_ns) / NS_PER_MS;
    /* It may have ended by itself, by SIGXFSZ for one, before we looked. */
    if (run->watch.dir >= 0 && disk_watch_is_over(&run->watch))
        result->usage.is_disk_full = true;
    result->reason = follow->reason;
    result->cancel_signal = follow->cancel_signal;
    result->has_status = follow->has_status || follow->is_ending;
    result->wait_status = follow->has_status ? follow->wait_status : SIGKILL;
    follow_flush(&run->follow);
    output_take(&run->output, result);
    result_judge(result);
    if (run->guest)
        run->guest->judge(run->guest->context, result);
    if (run->request->policy)
        appraise(result, run->request->policy);
    r = evidence_end(&run->evidence, result, err);
    if (r == 0 && run->place)
        r = end_place(run, err);
    if (r < 0)
        return r;

    bool is_kept = wants_artifacts(run);
    if (is_kept)
        r = output_keep(&run->output, err);
    output_name(&run->output, result);
    if (r == 0 && is_kept)
        r = keep_artifacts(run, err);
    if (r == 0)
        r = evidence_close(&run->evidence, result, err);
    if (r < 0)
        return r;
    memcpy(result->seal, run->evidence.seal, sizeof(result->seal));
    if (run->evidence.journal &&
            asprintf(&result->journal, "%s/journal.jsonl", run->output.dir) < 0)
        result->journal = NULL;
    r = result_write_json(result);
    if (r < 0)
        return err_set_errno(err, r, "result");
    return sandbox_stop(run->box, NULL, err); /* nothing is left when a run is over */
}

static struct run *run_new(const struct run_request *request)
{
    struct run *run = calloc(1, sizeof(*run));

    if (!run)
        return NULL;
    run->request = request;
    run->guest = request->guest;
    run->options = &run->permit.options;
    run->process = PROCESS_INIT;
    run->follow.sinks[0] = run->follow.sinks[1] = -1;
    run->output = (struct output)OUTPUT_INIT;
    run->result = calloc(1, sizeof(*run->result));
    if (!run->result) {
        free(run);
        return NULL;
    }
    run->result->usage = USAGE_INIT;
    run->result->stdout_text = run->result->stderr_text = BUF_INIT(SIZE_MAX / 4);
    run->result->stderr_end = BUF_INIT(CAPTURE_END);
    run->result->json = BUF_INIT(SIZE_MAX / 4);
    run->result->guest = GUEST_ANSWER_INIT;
    run->result->summary = BUF_INIT(64U << 10);
    run->watch = (struct disk_watch)DISK_WATCH_INIT;
    return run;
}

static void run_free(struct run *run)
{
    if (!run)
        return;
    process_close(run->process);
    follow_finish(&run->follow);
    sandbox_free(run->box);
    workplace_free(run->place); /* after the sandbox: it holds the lock */
    output_finish(&run->output);
    carrel_run_result_free(run->result);
    evidence_finish(run->evidence);
    permit_finish(run->permit);
    free(run);
}
DEFINE_AUTO(struct run *, run_free)

static int take_id(const char *given, const char *what, char prefix, char id[static 20],
        size_t size, struct carrel_error *err)
{
    if (!given)
        return state_new_id(prefix, id, err);
    (void)snprintf(id, size, "%s", given);
    return name_check_id(given, what, err);
}

/* The caller's ids, the workspace's when one is taken up again, or new ones. */
static int name_run(struct run *run, struct carrel_error *err)
{
    const struct carrel_workspace_options *o = run->options->workspace;
    struct carrel_run_result *result = run->result;

    if (!o)
        return state_new_id('R', result->run, err);
    if (o->resume)
        return workplace_find_ids(o->resume, result->task, result->run, err);
    int r = take_id(o->task, "task", 'T', result->task, sizeof(result->task), err);
    if (r == 0)
        r = take_id(o->run, "run", 'R', result->run, sizeof(result->run), err);
    if (r == 0 && o->task && o->run)
        r = workplace_check_free(result->task, result->run, err);
    return r;
}

static int follow(struct run *run, struct carrel_error *err)
{
    run->follow.options = run->options;
    run->follow.box = run->box;
    run->follow.process = &run->process;
    run->follow.watch = &run->watch;
    run->follow.out = &run->output.out;
    run->follow.err = &run->output.err;
    run->follow.deadline_ns = clock_ns() + run->result->timeout_ms * NS_PER_MS;
    follow_begin(&run->follow);
    return follow_to_end(&run->follow, err);
}

/* What was asked for becomes what may be done; the run gets its name. */
static int permit(struct run *run, struct carrel_error *err)
{
    const struct run_request *request = run->request;
    struct carrel_run_result *result = run->result;

    run->permit.options = *request->options;
    int r = request->policy ? permit_make(request->options, request->policy,
                                      (const char *const *)environ, &run->permit, err)
                            : 0;
    if (r < 0)
        return r;
    result->timeout_ms =
            run->options->timeout_ms ? run->options->timeout_ms : DEFAULT_TIMEOUT_MS;
    result->output_bytes =
            run->options->output_bytes ? run->options->output_bytes : DEFAULT_OUTPUT_BYTES;
    return name_run(run, err);
}

/* From the first record to the last. */
static int execute(struct run *run, uint64_t began_ns, struct carrel_error *err)
{
    int r = output_open(&run->output, run->result, run->options->workspace,
            run->permit.output_file_bytes, err);

    if (r == 0)
        r = create_or_fall_back(run, err);
    if (r < 0)
        return drop_place(run, not_the_program(r, err));
    r = start(run, err);
    if (r < 0)
        return drop_place(run, r);
    r = follow(run, err);
    if (r == 0)
        r = finish(run, began_ns, err);
    return r < 0 ? not_the_program(r, err) : 0;
}

int run_execute(const struct run_request *request, struct carrel_run_result **out,
        struct carrel_error *err)
{
    uint64_t began_ns = clock_ns();

    int r = check_options(request->options, err);
    if (r < 0)
        return r;
    AUTO(run_free) struct run *run = run_new(request);
    if (!run)
        return err_set_errno(err, -ENOMEM, "run");

    r = permit(run, err);
    if (r < 0)
        return not_the_program(r, err);
    r = execute(run, began_ns, err);
    if (r < 0) {
        (void)begin_evidence(run, NULL); /* what was refused is told, too; `err` says more */
        evidence_abandon(&run->evidence, err);
        return r;
    }
    *out = ptr_steal(&run->result);
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
    return r < 0 ? not_the_program(r, err) : 0;
}

int carrel_run(const struct carrel_run_options *options, struct carrel_run_result **out,
        struct carrel_error *err)
{
    struct carrel_error ignored;
    AUTO(policy_free) struct policy *policy = NULL;

    if (!err)
        err = &ignored;
    int r = check_options(options, err);
    if (r == 0)
        r = run_load_policy(options, &policy, err);
    if (r < 0)
        return r;
    const struct run_request request = { .options = options, .policy = policy };
    return run_execute(&request, out, err);
}
