/*
 * runs.h - past runs, for `carrel runs` and other callers.
 *
 * A run is a directory below STATE/runs with its journal, its artifacts and its output. One in
 * progress is never touched: its journal is locked.
 */
#pragma once
#include "base/auto.h"
#include "base/buf.h"
#include "core/state/state.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct carrel_error;
struct policy;

enum run_state {
    RUN_IN_PROGRESS,
    RUN_SEALED,
    RUN_UNSEALED, /* its carrel was killed */
    RUN_BARE,     /* not recorded: only output was kept */
};

struct run_entry {
    char key[STATE_KEY_MAX]; /* as state_run_key() makes it */
    char task[STATE_KEY_MAX];
    enum run_state state;
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

const char *run_state_name(enum run_state state); /* "in progress" ... */

int runs_list(struct run_list *out, struct carrel_error *err);

/* The run that `name` identifies: its key, "T/R", or a unique prefix of one. */
int runs_find(const char *name, struct run_entry *out, struct carrel_error *err);
void run_entry_finish(struct run_entry entry);
DEFINE_AUTO(struct run_entry, run_entry_finish)

/* The newest result that was kept, JSON; empty: none. */
int runs_result(const char *key, struct buf *out, struct carrel_error *err);

/* The files of a run, relative to its directory, which is written to `dir`. */
int runs_files(const char *key, char *dir, size_t size,
        void (*each)(const char *name, uint64_t bytes, void *context), void *context,
        struct carrel_error *err);

struct runs_prune {
    uint64_t older_than_s; /* 0: of any age */
    size_t keep;           /* the newest so many are kept */
    bool is_dry_run;
    void (*each)(const struct run_entry *entry, void *context); /* may be NULL */
    void *context;
};

/*
 * Removes runs and records that in the index. Keeps those in progress, and those with an
 * existing workspace. Returns how many.
 */
int runs_prune(const struct runs_prune *what, struct carrel_error *err);

/*
 * Removes artifacts and output, never a journal, of runs older than `max_age_s`, then of the
 * oldest until all runs together have at most `max_bytes`. Returns how many runs lost
 * something.
 */
int runs_sweep(uint64_t max_bytes, uint64_t max_age_s, struct carrel_error *err);

/* The same with the policy's budget, unless it was done a few minutes ago. */
void runs_sweep_when_due(const struct policy *policy);
