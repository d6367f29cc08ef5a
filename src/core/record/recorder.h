/*
 * recorder.h - writes the journal of a run.
 *
 * Each function writes one record: before the step if it permits it, after it if it reports it.
 * A record that cannot be written is a failure of the run: nothing continues unrecorded. With
 * the journal off they do nothing.
 */
#pragma once
#include "base/auto.h"
#include "journal/journal.h"
#include <stdbool.h>
#include <stdint.h>

struct artifact;
struct artifact_code;
struct carrel_error;
struct carrel_run_options;
struct carrel_run_result;
struct outcome;
struct permit;
struct policy;
struct workspace;

struct recorder {
    struct journal *journal; /* NULL: off */
    struct journal_key *key; /* NULL: seals are not signed */
    char seal[JOURNAL_HASH]; /* of the last seal; empty: not sealed */
    bool is_sealed_now;      /* nothing was recorded since */
    bool is_failed;          /* a record could not be written */
};
void recorder_finish(struct recorder recorder);
DEFINE_AUTO(struct recorder, recorder_finish)

/*
 * Opens the journal and records the request and its policy. `code`: what is run, if that is
 * more than the permit's argv; else NULL.
 */
int recorder_begin(struct recorder *recorder, const struct carrel_run_result *result,
        const struct permit *permit, const struct policy *policy,
        const struct artifact_code *code, struct carrel_error *err);

/*
 * Continues the journal of a run that has ended. Its size is no longer bounded: the bound is
 * for what a run writes, and a run that was stopped by it must not keep its user from the work.
 */
int recorder_reopen(struct recorder *recorder, const char *task, const char *run,
        const struct policy *policy, struct carrel_error *err);

/*
 * Records what happened to its workspace, and seals again: `seal` covers everything before it.
 */
int recorder_delivered(struct recorder *recorder, const char *event, const char *branch,
        const char *commit, struct carrel_error *err);

int recorder_fallback(struct recorder *recorder, const char *from, const char *to,
        const char *why, struct carrel_error *err);
int recorder_workspace(
        struct recorder *recorder, const struct workspace *ws, struct carrel_error *err);
int recorder_sandbox(struct recorder *recorder, const struct carrel_run_result *result,
        struct carrel_error *err);
int recorder_start(struct recorder *recorder, const char *program, struct carrel_error *err);

/*
 * One of the programs of a living sandbox, counted from 1: before it starts, if it could not,
 * and when it has exited.
 */
int recorder_exec(struct recorder *recorder, uint32_t number,
        const struct carrel_run_options *options, bool is_detached, struct carrel_error *err);
int recorder_exec_failed(
        struct recorder *recorder, uint32_t number, const struct carrel_error *why);
int recorder_exec_ended(struct recorder *recorder, uint32_t number, int wait_status,
        uint64_t duration_ms, bool is_timeout, struct carrel_error *err);

/*
 * An operation on a living sandbox: "paused", "lease_renewed" ...; `detail` is JSON text of an
 * object, or NULL.
 */
int recorder_note(struct recorder *recorder, const char *event, const char *detail,
        struct carrel_error *err);

/* The program has exited: which limit it reached, and how it ended. */
int recorder_end(struct recorder *recorder, const struct carrel_run_result *result,
        struct carrel_error *err);
int recorder_outcome(
        struct recorder *recorder, const struct outcome *outcome, struct carrel_error *err);
int recorder_artifacts(struct recorder *recorder, const struct artifact *artifacts, size_t n,
        struct carrel_error *err);

/* Seals the records so far, for a commit that will contain the seal. */
int recorder_seal(struct recorder *recorder, const char *reason, struct carrel_error *err);

/* The last record and the seal. */
int recorder_close(struct recorder *recorder, const struct carrel_run_result *result,
        struct carrel_error *err);

/* The same for a run that failed with `why`, as far as it can be written. */
void recorder_abandon(struct recorder *recorder, const struct carrel_error *why);
