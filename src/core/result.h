/* result.h - what came of a run: one struct, one JSON form. */
#pragma once
#include "base/buf.h"
#include "runtime/runtime.h"
#include "workspace/name.h"
#include <carrel/run.h>

struct outcome;

struct carrel_run_result {
    char run[NAME_ID_MAX + 1];  /* empty: there was no run */
    char task[NAME_ID_MAX + 1]; /* empty: none */
    enum carrel_reason reason;
    bool has_status;
    int wait_status; /* as waitpid() gives it */
    int cancel_signal;
    struct buf stdout_text;
    struct buf stderr_text;
    uint64_t stdout_bytes;
    uint64_t stderr_bytes;
    bool is_truncated;
    char *stdout_file; /* NULL: the text is whole, or the file could not be kept */
    char *stderr_file;
    uint64_t duration_ms;
    struct sandbox_usage usage;
    const char *runtime;
    enum isolation isolation;
    uint64_t protections;
    enum limit_holder held_by[LIMIT_COUNT];
    uint64_t limits[LIMIT_COUNT];
    uint64_t timeout_ms;
    uint64_t output_bytes;
    char *workspace;         /* as the program sees it */
    struct outcome *outcome; /* of the run's own workspace; NULL: it had none */
    struct buf summary;      /* of that, for people */
    char message[512];
    char note[256];
    struct buf json;
};

const char *reason_name(enum carrel_reason reason); /* "timeout" */

/* Decides the reason from the status and the figures, and writes the message. */
void result_judge(struct carrel_run_result *result);

/* Says which limits are held by less than a cgroup. */
void result_note_limits(struct carrel_run_result *result);

/* A result for a run that could not be: the message of the error, everything else unknown. */
int result_from_error(const struct carrel_error *err, struct carrel_run_result **out);

/* Fills in result->json. -ENOMEM is the only failure. */
int result_write_json(struct carrel_run_result *result);
