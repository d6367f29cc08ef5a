/*
 * runs.h - past runs: those that are kept, and how long.
 *
 * A run is a directory below STATE/runs with its journal, its artifacts and its output. One in
 * progress is never touched: its journal is locked.
 */
#pragma once
#include "base/auto.h"
#include "core/state/state.h"
#include <carrel/journal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct carrel_error;
struct policy;

struct run_entry {
    char key[STATE_KEY_MAX]; /* as state_run_key() makes it */
    char task[STATE_KEY_MAX];
    enum carrel_record_state state;
    char began[32];   /* from the journal; empty: unknown */
    uint64_t began_s; /* since 1970 */
    char reason[32];  /* empty: unknown */
    bool has_status;
    int64_t status;
    bool has_duration;
    uint64_t duration_ms;
    uint64_t bytes; /* of all files of the run */
    char *argv;     /* as JSON; NULL: unknown */
};

struct run_list {
    struct run_entry *items; /* newest first */
    size_t n;
};
void run_list_finish(struct run_list list);
DEFINE_AUTO(struct run_list, run_list_finish)

int runs_list(struct run_list *out, struct carrel_error *err);

void run_entry_finish(struct run_entry entry);

/* Shows it; the view is valid as long as `entry` is. */
void runs_view(const struct run_entry *entry, struct carrel_run_info *out);

/*
 * Removes artifacts and output, never a journal, of runs older than `max_age_s`, then of the
 * oldest until all runs together have at most `max_bytes`. Returns how many runs lost
 * something.
 */
int runs_sweep(uint64_t max_bytes, uint64_t max_age_s, struct carrel_error *err);

/* The same with the policy's budget, unless it was done a few minutes ago. */
void runs_sweep_when_due(const struct policy *policy);
