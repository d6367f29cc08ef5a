/* recorder.c - the records of a run, one function for each kind. */
#include "core/record/recorder.h"
#include "base/err.h"
#include "base/sha256.h"
#include "core/record/recorder_line.h"
#include "core/request/permit.h"
#include "core/result/artifacts.h"
#include "core/result/outcome.h"
#include "core/result/result.h"
#include "core/state/state.h"
#include "journal/key.h"
#include "policy/policy.h"
#include "runtime/runtime.h"
#include "workspace/workspace.h"
#include <carrel/run.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define NAMES_MAX 256U /* variables and mounts in a record */
#define TEXT_MAX (4U << 10)

void recorder_finish(struct recorder recorder)
{
    journal_close(recorder.journal);
    if (recorder.key)
        journal_key_free(recorder.key);
}

struct json *recorder_line_begin(struct recorder *recorder, const char *event)
{
    if (!recorder->journal)
        return NULL;
    recorder->is_sealed_now = false;
    return journal_begin(recorder->journal, event);
}

int recorder_line_add(struct recorder *recorder, struct carrel_error *err)
{
    int r = journal_add(recorder->journal, err);

    recorder->is_failed = r < 0;
    return r < 0 ? err_wrap(err, r, "nothing is run unrecorded") : 0;
}

/* Names alone: values are often secrets. */
static void write_env(struct json *json, const char *const *env)
{
    size_t n = 0;

    json_array(json, "env");
    for (; env && env[n]; n++) {
        size_t len = strcspn(env[n], "=");
        if (n < NAMES_MAX)
            json_bytes(json, NULL, env[n], len < 128 ? len : 128);
    }
    json_end_array(json);
    json_u64(json, "env_count", n);
}

static void write_mounts(struct json *json, const struct carrel_run_options *o)
{
    json_array(json, "mounts");
    for (size_t i = 0; i < o->n_mounts && i < NAMES_MAX; i++) {
        json_object(json, NULL);
        json_str(json, "source", o->mounts[i].source);
        json_str(json, "target", o->mounts[i].target);
        json_bool(json, "writable", o->mounts[i].is_writable);
        json_end_object(json);
    }
    json_end_array(json);
}

static enum journal_fsync fsync_of(const char *name)
{
    if (name && strcmp(name, "always") == 0)
        return JOURNAL_FSYNC_ALWAYS;
    return name && strcmp(name, "end") == 0 ? JOURNAL_FSYNC_END : JOURNAL_FSYNC_NEVER;
}

static int load_key(
        struct recorder *recorder, const struct policy *policy, struct carrel_error *err)
{
    const char *given = policy_get(policy, POLICY_JOURNAL_KEY)->text;
    char path[PATH_MAX];

    if (!policy_get(policy, POLICY_JOURNAL_SIGN)->number)
        return 0;
    int r = given ? 0 : state_config_path("journal.key", path, sizeof(path), err);
    return r < 0 ? r : journal_key_load(given ? given : path, &recorder->key, err);
}

static int open_journal(struct recorder *recorder, const char *task, const char *run,
        const struct policy *policy, uint64_t max_bytes, struct carrel_error *err)
{
    char state[PATH_MAX];
    char runs[PATH_MAX + 8];
    char key[STATE_KEY_MAX];

    int r = state_path(state, sizeof(state), err);
    if (r == 0)
        r = state_make(state, err);
    if (r == 0)
        r = load_key(recorder, policy, err);
    if (r < 0)
        return r;
    (void)snprintf(runs, sizeof(runs), "%s/runs", state);
    state_run_key(task, run, key);
    const struct journal_options options = {
        .runs = runs,
        .run = key,
        .task = task[0] ? task : NULL,
        .fsync = fsync_of(policy_get(policy, POLICY_JOURNAL_FSYNC)->text),
        .max_bytes = max_bytes,
        .key = recorder->key,
    };
    return journal_open(&options, &recorder->journal, err);
}

/* The network access: recorded once per run, since it is all or nothing. */
static int record_egress(
        struct recorder *recorder, const struct carrel_run_options *o, struct carrel_error *err)
{
    struct json *json = recorder_line_begin(recorder, "egress_decision");
    bool is_host = o->network == CARREL_NETWORK_HOST ||
                   (o->network == CARREL_NETWORK_DEFAULT &&
                           policy_runtime_isolation(o->runtime) == POLICY_ISOLATION_NONE);

    json_str(json, "decision", is_host ? "allow" : "deny");
    json_str(json, "network", is_host ? "host" : "none");
    json_str(json, "destination", "*");
    return recorder_line_add(recorder, err);
}

/* Code is identified by its hash; artifacts contain it. */
static void write_code(struct json *json, const struct artifact_code *code)
{
    char hex[SHA256_HEX];

    sha256_hex(code->text, code->len, hex);
    json_str(json, "language", code->language);
    json_u64(json, "code_bytes", code->len);
    json_str(json, "code_sha256", hex);
}

int recorder_begin(struct recorder *recorder, const struct carrel_run_result *result,
        const struct permit *permit, const struct policy *policy,
        const struct artifact_code *code, struct carrel_error *err)
{
    const struct carrel_run_options *o = &permit->options;
    const bool is_resumed = o->workspace && o->workspace->resume;

    if (o->journal == CARREL_JOURNAL_OFF)
        return 0;
    int r = open_journal(recorder, result->task, result->run, policy,
            policy_get(policy, POLICY_JOURNAL_MAX)->number, err);
    if (r == -EBUSY)
        return err_set(err, r, "run '%s' is in progress: try again when it has ended%s",
                result->run, is_resumed ? "" : ", or choose another run id");
    if (r < 0)
        return err_wrap(err, r, "nothing is run unrecorded");
    struct json *json =
            recorder_line_begin(recorder, is_resumed ? "run_resumed" : "run_started");
    json_str(json, "carrel", CARREL_VERSION);
    json_str(json, "task", result->task[0] ? result->task : NULL);
    json_u64(json, "uid", geteuid());
    json_u64(json, "pid", (uint64_t)getpid());
    json_str(json, "policy_sha256", policy_hash(policy));
    journal_words(json, "argv", code ? code->argv : o->argv, RECORD_ARGV_MAX);
    if (code && code->text)
        write_code(json, code);
    json_str(json, "cwd", o->cwd);
    json_str(json, "runtime", o->runtime);
    json_str(json, "root", o->root);
    json_str(json, "image", o->image);
    write_env(json, o->env);
    write_mounts(json, o);
    json_object(json, "asked");
    json_u64(json, "timeout_ms", result->timeout_ms);
    json_u64(json, "cpu_milli", o->cpu_milli);
    json_u64(json, "memory_bytes", o->memory_bytes);
    json_u64(json, "disk_bytes", o->disk_bytes);
    json_u64(json, "pids", o->pids);
    json_u64(json, "files", o->files);
    json_str(json, "require", o->require);
    json_str(json, "best_effort", o->best_effort);
    json_str(json, "ids", o->ids == CARREL_IDS_SUB ? "sub" : "own");
    json_end_object(json);
    r = recorder_line_add(recorder, err);
    return r < 0 ? r : record_egress(recorder, o, err);
}

int recorder_reopen(struct recorder *recorder, const char *task, const char *run,
        const struct policy *policy, struct carrel_error *err)
{
    int r = open_journal(recorder, task, run, policy, 0, err);
    if (r < 0)
        return err_wrap(err, r, "the journal of run '%s'", run);
    return 0;
}

int recorder_delivered(struct recorder *recorder, const char *event, const char *branch,
        const char *commit, struct carrel_error *err)
{
    struct json *json = recorder_line_begin(recorder, event);

    if (!json)
        return 0;
    json_str(json, "branch", branch);
    json_str(json, "commit", commit);
    int r = recorder_line_add(recorder, err);
    return r < 0 ? r : recorder_seal(recorder, event, err);
}

int recorder_fallback(struct recorder *recorder, const char *from, const char *to,
        const char *why, struct carrel_error *err)
{
    struct json *json = recorder_line_begin(recorder, "fallback_taken");

    if (!json)
        return 0;
    json_str(json, "from", from);
    json_str(json, "to", to);
    json_str(json, "why", why);
    return recorder_line_add(recorder, err);
}

int recorder_workspace(
        struct recorder *recorder, const struct workspace *ws, struct carrel_error *err)
{
    struct json *json = recorder_line_begin(recorder, "workspace_made");

    if (!json)
        return 0;
    json_str(json, "directory", ws->path);
    json_str(json, "of", ws->top);
    json_str(json, "branch", ws->branch[0] ? ws->branch : NULL);
    json_str(json, "base", ws->base);
    json_str(json, "tree", workspace_mode_name(ws->mode));
    return recorder_line_add(recorder, err);
}

int recorder_sandbox(struct recorder *recorder, const struct carrel_run_result *result,
        struct carrel_error *err)
{
    struct json *json = recorder_line_begin(recorder, "sandbox_made");

    if (!json)
        return 0;
    json_str(json, "runtime", result->runtime);
    json_str(json, "isolation", isolation_name(result->isolation));
    result_write_protections(result, json);
    result_write_limits(result, json);
    return recorder_line_add(recorder, err);
}

int recorder_start(struct recorder *recorder, const char *program, struct carrel_error *err)
{
    struct json *json = recorder_line_begin(recorder, "process_started");

    if (!json)
        return 0;
    journal_text(json, "program", program, strlen(program), TEXT_MAX);
    return recorder_line_add(recorder, err);
}

/* The limit that a reason refers to; NULL: none. */
static const char *limit_of(enum carrel_reason reason)
{
    static const char *const limits[] = {
        [CARREL_TIMEOUT] = "timeout",
        [CARREL_MEMORY_LIMIT] = "memory",
        [CARREL_DISK_LIMIT] = "disk",
        [CARREL_PIDS_LIMIT] = "pids",
    };

    return reason < ARRAY_LEN(limits) ? limits[reason] : NULL;
}

int recorder_end(struct recorder *recorder, const struct carrel_run_result *result,
        struct carrel_error *err)
{
    const char *limit = limit_of(result->reason);
    struct json *json;

    if (!recorder->journal)
        return 0;
    if (limit) {
        json = recorder_line_begin(recorder, "limit_hit");
        json_str(json, "limit", limit);
        json_str(json, "message", result->message);
        int r = recorder_line_add(recorder, err);
        if (r < 0)
            return r;
    }
    if (result->warning[0]) {
        json = recorder_line_begin(recorder, "threshold_passed");
        json_str(json, "warning", result->warning);
        int r = recorder_line_add(recorder, err);
        if (r < 0)
            return r;
    }
    json = recorder_line_begin(recorder, "process_ended");
    json_str(json, "reason", carrel_reason_name(result->reason));
    result_write_status(result, json);
    json_u64(json, "duration_ms", result->duration_ms);
    result_write_usage(result, json);
    return recorder_line_add(recorder, err);
}

int recorder_outcome(
        struct recorder *recorder, const struct outcome *outcome, struct carrel_error *err)
{
    char event[32];

    if (!recorder->journal)
        return 0;
    (void)snprintf(event, sizeof(event), "workspace_%s", outcome->state);
    struct json *json = recorder_line_begin(recorder, event);
    json_str(json, "branch", outcome->branch[0] ? outcome->branch : NULL);
    json_str(json, "base", outcome->base);
    json_str(json, "snapshot", outcome->snapshot);
    json_str(json, "unread", outcome_is_unread(outcome) ? outcome->unread.message : NULL);
    outcome_write_count(outcome, json, "changed", outcome->summary.n_files);
    outcome_write_count(outcome, json, "commits", outcome->summary.n_commits);
    outcome_write_count(outcome, json, "sensitive", outcome->summary.n_sensitive);
    return recorder_line_add(recorder, err);
}

int recorder_artifacts(struct recorder *recorder, const struct artifact *artifacts, size_t n,
        struct carrel_error *err)
{
    struct json *json = n ? recorder_line_begin(recorder, "artifacts_stored") : NULL;

    if (!json)
        return 0;
    json_array(json, "files");
    for (size_t i = 0; i < n; i++) {
        json_object(json, NULL);
        json_str(json, "name", artifacts[i].name);
        json_u64(json, "bytes", artifacts[i].bytes);
        json_str(json, "sha256", artifacts[i].sha256);
        json_end_object(json);
    }
    json_end_array(json);
    return recorder_line_add(recorder, err);
}

int recorder_seal(struct recorder *recorder, const char *reason, struct carrel_error *err)
{
    if (!recorder->journal || recorder->is_sealed_now)
        return 0;
    int r = journal_seal(recorder->journal, reason, recorder->seal, err);
    recorder->is_failed = r < 0;
    recorder->is_sealed_now = r == 0;
    return r < 0 ? err_wrap(err, r, "nothing is run unrecorded") : 0;
}

int recorder_close(struct recorder *recorder, const struct carrel_run_result *result,
        struct carrel_error *err)
{
    struct json *json = recorder_line_begin(recorder, "run_ended");

    if (!json)
        return 0;
    json_str(json, "reason", carrel_reason_name(result->reason));
    json_i64(json, "status", carrel_run_result_status(result));
    json_str(json, "message", result->message);
    int r = recorder_line_add(recorder, err);
    return r < 0 ? r : recorder_seal(recorder, carrel_reason_name(result->reason), err);
}

void recorder_abandon(struct recorder *recorder, const struct carrel_error *why)
{
    struct json *json = recorder->is_failed ? NULL : recorder_line_begin(recorder, "run_ended");

    if (json) {
        json_str(json, "reason", carrel_reason_name(CARREL_INFRASTRUCTURE));
        json_null(json, "status");
        json_str(json, "message", why->message);
        (void)recorder_line_add(recorder, NULL);
    }
    /*
     * A journal that is full still accepts a seal; after any other failure it stays unsealed,
     * which is reported.
     */
    (void)recorder_seal(recorder, carrel_reason_name(CARREL_INFRASTRUCTURE), NULL);
}
