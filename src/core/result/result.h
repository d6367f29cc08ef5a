/* result.h - what came of a run: one struct, one JSON form. */
#pragma once
#include "base/buf.h"
#include "core/result/capture.h"
#include "core/state/state.h"
#include "git/name.h"
#include "journal/journal.h"
#include "runtime/runtime.h"
#include <carrel/run.h>

struct json;
struct outcome;

/* What a language adds to the result of a run, as JSON; what is empty is null. */
struct guest_answer {
    struct buf value;       /* what the program called its result */
    struct buf value_error; /* why there is none */
    struct buf error;       /* what it did not catch */
    struct buf meta;        /* the interpreter, and what was found in the code */
};
#define GUEST_ANSWER_INIT                                                                      \
    (struct guest_answer)                                                                      \
    {                                                                                          \
        .value = BUF_INIT(SIZE_MAX / 4), .value_error = BUF_INIT(SIZE_MAX / 4),                \
        .error = BUF_INIT(SIZE_MAX / 4), .meta = BUF_INIT(SIZE_MAX / 4)                        \
    }

#define RESULT_NOTE_MAX 1024

struct carrel_run_result {
    char run[NAME_ID_MAX + 1];     /* empty: there was no run */
    char task[NAME_ID_MAX + 1];    /* empty: none */
    char key[STATE_KEY_MAX];       /* of both, once the result is written; empty: no run */
    char sandbox[NAME_ID_MAX + 1]; /* the living one it was in; empty: one of its own */
    enum carrel_reason reason;
    bool is_lost; /* what became of the program is not known */
    bool has_status;
    int wait_status; /* as waitpid() gives it */
    int cancel_signal;
    struct buf stdout_text;
    struct buf stderr_text;
    struct buf stderr_end; /* its last bytes, also those that are cut from the text */
    struct capture_cut stdout_cut;
    struct capture_cut stderr_cut;
    uint64_t stdout_bytes;
    uint64_t stderr_bytes;
    bool is_truncated;
    int output_error;  /* what was passed on did not all arrive: a negative errno */
    char *stdout_file; /* NULL: the text is whole, or the file could not be kept */
    char *stderr_file;
    uint64_t duration_ms;
    struct sandbox_usage usage;
    const char *runtime;
    const char *fallback_from; /* the runtime that was asked for first; NULL: this one */
    enum isolation isolation;
    uint64_t protections;
    enum limit_holder held_by[LIMIT_COUNT];
    uint64_t limits[LIMIT_COUNT];
    uint64_t timeout_ms;
    uint64_t output_bytes;
    char *workspace;         /* as the program sees it */
    struct outcome *outcome; /* of the run's own workspace; NULL: it had none */
    struct buf summary;      /* of that, for people */
    struct guest_answer guest;
    char *journal; /* its file; NULL: none */
    char seal[JOURNAL_HASH];
    char *artifacts; /* their directory; NULL: none */
    bool has_cost;
    uint64_t cost_nano; /* billionths of the currency */
    char currency[16];
    char warning[256]; /* limits that were nearly reached; empty: none */
    char message[512];
    struct carrel_error error; /* code 0: the program ran */
    char note[RESULT_NOTE_MAX];
    struct buf json;
};

/* Nothing is known yet. NULL: no memory. */
struct carrel_run_result *result_new(void);

/* It exited by itself, with 0. */
bool result_is_ok(const struct carrel_run_result *result);

/* Decides the reason from the status and the figures, and writes the message. */
void result_set_reason(struct carrel_run_result *result);

/* Notes which limits are enforced by less than a cgroup; "": none. */
void result_note_limits(struct carrel_run_result *result);
void result_note_held(const enum limit_holder held_by[static LIMIT_COUNT],
        const uint64_t limits[static LIMIT_COUNT], enum isolation isolation,
        char note[static RESULT_NOTE_MAX]);

/* Members of the JSON form, as the journal has them too. */
void result_write_wait_status(int wait_status, struct json *json); /* as waitpid() gives it */
void result_write_status(const struct carrel_run_result *result, struct json *json);
void result_write_usage(const struct carrel_run_result *result, struct json *json);
void result_write_protections(const struct carrel_run_result *result, struct json *json);
void result_write_limits(const struct carrel_run_result *result, struct json *json);

/* Fills in result->json. -ENOMEM is the only failure. */
int result_write_json(struct carrel_run_result *result);
