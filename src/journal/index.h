/*
 * index.h - RUNS/index.jsonl: every run that was begun, sealed, or removed on purpose.
 *
 * It is chained like a journal and records the seals of each run. So a journal that was
 * truncated to an earlier seal, replaced or deleted is detected. Many processes write to it,
 * each under a lock that it holds for one record.
 */
#pragma once
#include "journal/journal.h"

#define JOURNAL_INDEX "index.jsonl"
#define JOURNAL_NAME "journal.jsonl"

struct journal_index_record {
    const char *event; /* run_begun, run_continued, run_sealed, run_pruned */
    const char *run;
    const char *task;   /* begun: may be NULL */
    const char *reason; /* sealed */
    const char *seal;   /* sealed: the hash of the seal */
    uint64_t records;   /* sealed */
};

/* Below the directory `runs`. A torn last line, left by a crash, is truncated and noted. */
int journal_index_add(int runs, const struct journal_index_record *record, bool must_sync,
        struct carrel_error *err);

/* Opens the directory of all runs; the second creates it if it is missing. */
int journal_open_runs(const char *path, struct carrel_error *err);
int journal_make_runs(const char *path, struct carrel_error *err);
