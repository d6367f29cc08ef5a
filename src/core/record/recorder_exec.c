/* recorder_exec.c - the records of a living sandbox, and of the programs in it. */
#include "base/err.h"
#include "core/record/recorder.h"
#include "core/record/recorder_line.h"
#include "core/result/result.h"
#include <carrel/run.h>
#include <string.h>

int recorder_exec(struct recorder *recorder, uint32_t number,
        const struct carrel_run_options *options, bool is_detached, struct carrel_error *err)
{
    struct json *json = recorder_line_begin(recorder, "exec_started");

    if (!json)
        return 0;
    json_u64(json, "exec", number);
    journal_words(json, "argv", options->argv, RECORD_ARGV_MAX);
    json_str(json, "cwd", options->cwd);
    json_bool(json, "detached", is_detached);
    return recorder_line_add(recorder, err);
}

int recorder_exec_failed(
        struct recorder *recorder, uint32_t number, const struct carrel_error *why)
{
    struct json *json = recorder_line_begin(recorder, "exec_failed");

    if (!json)
        return 0;
    json_u64(json, "exec", number);
    json_str(json, "message", why->message);
    return recorder_line_add(recorder, NULL);
}

int recorder_exec_ended(struct recorder *recorder, uint32_t number, int wait_status,
        uint64_t duration_ms, bool is_timeout, struct carrel_error *err)
{
    struct json *json = recorder_line_begin(recorder, "exec_ended");

    if (!json)
        return 0;
    json_u64(json, "exec", number);
    result_write_wait_status(wait_status, json);
    json_bool(json, "timeout", is_timeout);
    json_u64(json, "duration_ms", duration_ms);
    return recorder_line_add(recorder, err);
}

int recorder_note(struct recorder *recorder, const char *event, const char *detail,
        struct carrel_error *err)
{
    struct json *json = recorder_line_begin(recorder, event);

    if (!json)
        return 0;
    if (detail)
        json_raw(json, "detail", detail, strlen(detail));
    return recorder_line_add(recorder, err);
}
