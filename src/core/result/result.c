/* result.c - sets the reason of a run, and writes its result. */
#include "core/result/result.h"
#include "base/err.h"
#include "base/json.h"
#include "base/str.h"
#include "core/result/outcome.h"
#include <assert.h>
#include <carrel/python.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

static const char reason_names[][16] = {
    [CARREL_EXITED] = "exited",
    [CARREL_SIGNALED] = "signaled",
    [CARREL_TIMEOUT] = "timeout",
    [CARREL_MEMORY_LIMIT] = "memory_limit",
    [CARREL_DISK_LIMIT] = "disk_limit",
    [CARREL_PIDS_LIMIT] = "pids_limit",
    [CARREL_CANCELLED] = "cancelled",
    [CARREL_DENIED] = "denied",
    [CARREL_INFRASTRUCTURE] = "infrastructure",
    [CARREL_SYNTAX_ERROR] = "syntax_error",
    [CARREL_BLOCKED_IMPORT] = "blocked_import",
};

const char *carrel_reason_name(enum carrel_reason reason)
{
    return reason < ARRAY_LEN(reason_names) ? reason_names[reason] : "infrastructure";
}

const char *carrel_run_result_run(const struct carrel_run_result *r)
{
    return r->key;
}

static bool is_known_and_positive(uint64_t figure)
{
    return figure != USAGE_UNKNOWN && figure > 0;
}

static bool has_failed(const struct carrel_run_result *r)
{
    return !r->has_status || !WIFEXITED(r->wait_status) || WEXITSTATUS(r->wait_status) != 0;
}

bool result_is_ok(const struct carrel_run_result *r)
{
    return r->reason == CARREL_EXITED && !has_failed(r);
}

/* A limit is the reason only if the program failed. */
static enum carrel_reason find_reason(const struct carrel_run_result *r)
{
    if (r->is_lost)
        return CARREL_INFRASTRUCTURE;
    if (r->reason == CARREL_TIMEOUT || r->reason == CARREL_CANCELLED ||
            r->reason == CARREL_DISK_LIMIT)
        return r->reason; /* carrel ended it */
    if (has_failed(r)) {
        if (is_known_and_positive(r->usage.oom_kills))
            return CARREL_MEMORY_LIMIT;
        if (r->usage.is_disk_full)
            return CARREL_DISK_LIMIT;
        if (is_known_and_positive(r->usage.pids_refused))
            return CARREL_PIDS_LIMIT;
    }
    if (!r->has_status)
        return CARREL_INFRASTRUCTURE;
    if (WIFSIGNALED(r->wait_status))
        return WTERMSIG(r->wait_status) == SIGSYS ? CARREL_DENIED : CARREL_SIGNALED;
    return CARREL_EXITED;
}

struct carrel_run_result *result_new(void)
{
    struct carrel_run_result *result = calloc(1, sizeof(*result));

    if (!result)
        return NULL;
    result->usage = USAGE_INIT;
    result->stdout_text = result->stderr_text = BUF_INIT(SIZE_MAX / 4);
    result->stderr_end = BUF_INIT(CAPTURE_END);
    result->json = BUF_INIT(SIZE_MAX / 4);
    result->guest = GUEST_ANSWER_INIT;
    result->summary = BUF_INIT(64U << 10);
    return result;
}

/* Where files are memory: a sandbox that stays has its private directories on disk. */
static const char *memory_places(const struct carrel_run_result *r)
{
    return r->sandbox[0] ? "/run and /dev/shm" : "/tmp and the private workspace";
}

void result_set_reason(struct carrel_run_result *r)
{
    char size[32];
    char *m = r->message;
    const size_t n = sizeof(r->message);

    r->reason = find_reason(r);
    switch (r->reason) {
    case CARREL_TIMEOUT:
        (void)snprintf(
                m, n, "Code execution timed out after %ss", str_milli(r->timeout_ms, size));
        break;
    case CARREL_CANCELLED:
        (void)snprintf(m, n, "Cancelled by signal %d (%s)", r->cancel_signal,
                sigdescr_np(r->cancel_signal));
        break;
    case CARREL_MEMORY_LIMIT:
        (void)snprintf(m, n,
                "Memory limit of %s reached: the kernel ended %" PRIu64
                " process%s (files in %s count as memory)",
                str_size(r->limits[LIMIT_MEMORY], size), r->usage.oom_kills,
                r->usage.oom_kills == 1 ? "" : "es", memory_places(r));
        break;
    case CARREL_DISK_LIMIT:
        (void)snprintf(m, n, "Disk limit of %s reached: no space left in the sandbox",
                str_size(r->limits[LIMIT_DISK], size));
        break;
    case CARREL_PIDS_LIMIT:
        (void)snprintf(m, n, "Process limit of %" PRIu64 " reached: refused %" PRIu64 " time%s",
                r->limits[LIMIT_PIDS], r->usage.pids_refused,
                r->usage.pids_refused == 1 ? "" : "s");
        break;
    case CARREL_DENIED:
        (void)snprintf(m, n,
                "Ended by the system call filter: 32-bit and x32 system calls are refused");
        break;
    case CARREL_SIGNALED:
        (void)snprintf(m, n, "Ended by signal %d (%s)", WTERMSIG(r->wait_status),
                sigdescr_np(WTERMSIG(r->wait_status)));
        break;
    case CARREL_INFRASTRUCTURE:
        (void)snprintf(m, n, "%s",
                r->is_lost
                        ? "The sandbox is out of reach: what became of the program is not known"
                        : "The sandbox ended before the program did");
        break;
    case CARREL_EXITED:
    case CARREL_SYNTAX_ERROR: /* a guest sets these two later */
    case CARREL_BLOCKED_IMPORT:
        m[0] = '\0';
        break;
    }
}

void result_note_limits(struct carrel_run_result *r)
{
    result_note_held(r->held_by, r->limits, r->isolation, r->note);
}

/* One that was not asked for is not missing. */
static bool is_wanted(enum limit limit, const uint64_t *limits)
{
    return limit < LIMIT_OPTIONAL || limits[limit];
}

void result_note_held(const enum limit_holder held_by[static LIMIT_COUNT],
        const uint64_t limits[static LIMIT_COUNT], enum isolation isolation,
        char note[static RESULT_NOTE_MAX])
{
    static const char *const substitutes[LIMIT_COUNT] = {
        [LIMIT_MEMORY] = "memory is limited per process only",
        [LIMIT_PIDS] = "pids by rlimit",
        [LIMIT_DISK] = "disk per file only",
    };
    size_t at = 0;

    note[0] = '\0';
    for (enum limit i = 0; i < LIMIT_COUNT; i++) {
        const char *text = NULL;
        char none[32];
        (void)snprintf(none, sizeof(none), "%s is not limited", limit_name(i));
        if (held_by[i] == HELD_BY_NOTHING)
            text = is_wanted(i, limits) ? none : NULL;
        else if (held_by[i] == HELD_BY_RLIMIT)
            text = substitutes[i];
        if (text && at < RESULT_NOTE_MAX)
            at += (size_t)snprintf(
                    note + at, RESULT_NOTE_MAX - at, "%s%s", at ? ", " : "", text);
    }
    if (at > 0 && at < RESULT_NOTE_MAX)
        (void)snprintf(note + at, RESULT_NOTE_MAX - at, "%s",
                isolation == ISOLATION_NONE ? "; this runtime isolates nothing"
                                            : "; 'carrel health' says why");
}

static void write_usage(struct json *json, const char *key, uint64_t figure)
{
    if (figure == USAGE_UNKNOWN)
        json_null(json, key);
    else
        json_u64(json, key, figure);
}

void result_write_wait_status(int wait_status, struct json *json)
{
    if (WIFEXITED(wait_status))
        json_i64(json, "exit_code", WEXITSTATUS(wait_status));
    else
        json_null(json, "exit_code");
    if (WIFSIGNALED(wait_status))
        json_i64(json, "signal", WTERMSIG(wait_status));
    else
        json_null(json, "signal");
}

void result_write_status(const struct carrel_run_result *r, struct json *json)
{
    if (r->has_status) {
        result_write_wait_status(r->wait_status, json);
        return;
    }
    json_null(json, "exit_code");
    json_null(json, "signal");
}

static void write_optional(
        struct json *json, const char *key, const struct carrel_run_result *r, enum limit limit)
{
    if (r->held_by[limit] == HELD_BY_NOTHING)
        json_null(json, key);
    else
        json_u64(json, key, r->limits[limit]);
}

void result_write_limits(const struct carrel_run_result *r, struct json *json)
{
    if (!r->run[0]) {
        json_null(json, "limits");
        json_null(json, "held_by");
        return;
    }
    json_object(json, "limits");
    json_u64(json, "timeout_ms", r->timeout_ms);
    json_u64(json, "memory_bytes", r->limits[LIMIT_MEMORY]);
    if (r->held_by[LIMIT_CPU] == HELD_BY_NOTHING)
        json_null(json, "cpu");
    else
        json_milli(json, "cpu", r->limits[LIMIT_CPU]);
    json_u64(json, "pids", r->limits[LIMIT_PIDS]);
    json_u64(json, "disk_bytes", r->limits[LIMIT_DISK]);
    json_u64(json, "files", r->limits[LIMIT_FILES]);
    write_optional(json, "io_read_bytes", r, LIMIT_IO_READ);
    write_optional(json, "io_write_bytes", r, LIMIT_IO_WRITE);
    json_u64(json, "output_bytes", r->output_bytes);
    json_end_object(json);
    json_object(json, "held_by");
    for (enum limit i = 0; i < LIMIT_COUNT; i++)
        if (is_wanted(i, r->limits))
            json_str(json, limit_name(i), limit_holder_name(r->held_by[i]));
    json_end_object(json);
}

void result_write_usage(const struct carrel_run_result *r, struct json *json)
{
    json_object(json, "usage");
    write_usage(json, "cpu_ms", r->usage.cpu_ms);
    write_usage(json, "peak_memory_bytes", r->usage.peak_memory_bytes);
    write_usage(json, "peak_pids", r->usage.peak_pids);
    write_usage(json, "written_bytes", r->usage.written_bytes);
    write_usage(json, "oom_kills", r->usage.oom_kills);
    write_usage(json, "pids_refused", r->usage.pids_refused);
    json_end_object(json);
}

void result_write_protections(const struct carrel_run_result *r, struct json *json)
{
    json_array(json, "protections");
    for (enum protection p = 0; p < PROTECT_COUNT; p++)
        if (r->protections & PROTECT_BIT(p))
            json_str(json, NULL, protection_name(p));
    json_end_array(json);
}

static void write_answer(struct json *json, const char *key, const struct buf *answer)
{
    if (answer->len > 0)
        json_raw(json, key, answer->data, answer->len);
    else
        json_null(json, key);
}

static void write_error(struct json *json, const struct carrel_error *err)
{
    if (err->code == 0) {
        json_null(json, "failure");
        return;
    }
    json_object(json, "failure");
    json_str(json, "reason", err->reason);
    json_str(json, "origin", carrel_origin_name(err->origin));
    json_end_object(json);
}

int result_write_json(struct carrel_run_result *r)
{
    struct json json = { .out = &r->json };

    if (r->run[0])
        state_run_key(r->task, r->run, r->key);
    buf_clear(&r->json);
    json_object(&json, NULL);
    json_str(&json, "run", r->run[0] ? r->run : NULL);
    json_str(&json, "task", r->task[0] ? r->task : NULL);
    json_str(&json, "sandbox", r->sandbox[0] ? r->sandbox : NULL);
    json_bool(&json, "ok", result_is_ok(r));
    json_str(&json, "reason", carrel_reason_name(r->reason));
    result_write_status(r, &json);
    json_bytes(&json, "stdout", r->stdout_text.data ? r->stdout_text.data : "",
            r->stdout_text.len);
    json_bytes(&json, "stderr", r->stderr_text.data ? r->stderr_text.data : "",
            r->stderr_text.len);
    json_u64(&json, "stdout_bytes", r->stdout_bytes);
    json_u64(&json, "stderr_bytes", r->stderr_bytes);
    json_bool(&json, "truncated", r->is_truncated);
    json_str(&json, "output_file", r->stdout_file);
    json_str(&json, "stderr_file", r->stderr_file);
    write_usage(&json, "duration_ms", r->run[0] ? r->duration_ms : USAGE_UNKNOWN);
    result_write_usage(r, &json);
    json_str(&json, "runtime", r->runtime);
    json_str(&json, "isolation", r->run[0] ? isolation_name(r->isolation) : NULL);
    result_write_protections(r, &json);
    json_str(&json, "fallback_from", r->fallback_from);
    result_write_limits(r, &json);
    json_object(&json, "workspace");
    json_str(&json, "path", r->workspace);
    if (r->outcome)
        outcome_write_json(r->outcome, r->run, &json);
    json_end_object(&json);
    write_answer(&json, "result", &r->guest.value);
    write_answer(&json, "result_error", &r->guest.value_error);
    write_answer(&json, "error", &r->guest.error);
    write_answer(&json, "meta", &r->guest.meta);
    json_str(&json, "warning", r->warning[0] ? r->warning : NULL);
    if (r->has_cost) {
        json_object(&json, "cost");
        json_nano(&json, "amount", r->cost_nano);
        json_str(&json, "currency", r->currency);
        json_end_object(&json);
    } else {
        json_null(&json, "cost");
    }
    json_str(&json, "journal", r->journal);
    json_str(&json, "journal_seal", r->seal[0] ? r->seal : NULL);
    json_str(&json, "artifacts", r->artifacts);
    json_str(&json, "note", r->note[0] ? r->note : NULL);
    json_str(&json, "message", r->message);
    write_error(&json, &r->error);
    json_end_object(&json);
    return r->json.is_short || r->guest.value.is_short || r->guest.value_error.is_short ||
                           r->guest.error.is_short || r->guest.meta.is_short
                   ? -ENOMEM
                   : 0;
}

int carrel_run_result_from_error(const struct carrel_error *why, uint64_t output_bytes,
        struct carrel_run_result **out, struct carrel_error *err)
{
    struct carrel_run_result *r = calloc(1, sizeof(*r));

    err = ERR_OR_IGNORED(err);
    if (!r)
        return err_set_errno(err, -ENOMEM, "result");
    r->reason = CARREL_INFRASTRUCTURE;
    r->usage = USAGE_INIT;
    r->json = BUF_INIT(SIZE_MAX / 4);
    r->output_bytes = output_bytes;
    (void)snprintf(r->message, sizeof(r->message), "%s", why->message);
    r->error = *why;
    int code = result_write_json(r);
    if (code < 0) {
        carrel_run_result_free(r);
        return err_set_errno(err, code, "result");
    }
    *out = r;
    return 0;
}

void carrel_run_result_free(struct carrel_run_result *r)
{
    if (!r)
        return;
    buf_finish(r->stdout_text);
    buf_finish(r->stderr_text);
    buf_finish(r->stderr_end);
    buf_finish(r->json);
    free(r->stdout_file);
    free(r->stderr_file);
    free(r->workspace);
    free(r->journal);
    free(r->artifacts);
    if (r->outcome)
        outcome_free(r->outcome);
    buf_finish(r->summary);
    buf_finish(r->guest.value);
    buf_finish(r->guest.value_error);
    buf_finish(r->guest.error);
    buf_finish(r->guest.meta);
    free(r);
}

enum carrel_reason carrel_run_result_reason(const struct carrel_run_result *r)
{
    return r->reason;
}

int carrel_run_result_status(const struct carrel_run_result *r)
{
    switch (r->reason) {
    case CARREL_TIMEOUT:
        return 124;
    case CARREL_CANCELLED:
        return 128 + r->cancel_signal;
    case CARREL_INFRASTRUCTURE:
        return 125;
    case CARREL_EXITED:
    case CARREL_SIGNALED:
    case CARREL_MEMORY_LIMIT:
    case CARREL_DISK_LIMIT:
    case CARREL_PIDS_LIMIT:
    case CARREL_DENIED:
    case CARREL_SYNTAX_ERROR:
    case CARREL_BLOCKED_IMPORT:
        break;
    }
    if (!r->has_status)
        return r->reason == CARREL_MEMORY_LIMIT ? 128 + SIGKILL : 125;
    return WIFSIGNALED(r->wait_status) ? 128 + WTERMSIG(r->wait_status)
                                       : WEXITSTATUS(r->wait_status);
}

const char *carrel_run_result_message(const struct carrel_run_result *r)
{
    return r->message;
}

int carrel_run_result_output_error(const struct carrel_run_result *r)
{
    return r->output_error;
}

const char *carrel_run_result_note(const struct carrel_run_result *r)
{
    return r->note;
}

const char *carrel_run_result_summary(const struct carrel_run_result *r)
{
    return r->summary.data ? r->summary.data : "";
}

const char *carrel_run_result_value(const struct carrel_run_result *r)
{
    return r->guest.value.data ? r->guest.value.data : "null";
}

const char *carrel_run_result_json(const struct carrel_run_result *r)
{
    return r->json.data;
}

const char *carrel_run_result_stdout(const struct carrel_run_result *r, size_t *len)
{
    *len = r->stdout_text.len;
    return r->stdout_text.data ? r->stdout_text.data : "";
}

const char *carrel_run_result_stderr(const struct carrel_run_result *r, size_t *len)
{
    *len = r->stderr_text.len;
    return r->stderr_text.data ? r->stderr_text.data : "";
}
