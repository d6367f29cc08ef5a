/*
 * index.h - RUNS/index.jsonl: every run that ever was, begun, sealed, removed on purpose.
 *
 * It is chained like a journal, and says of each what its seals were: a journal that was cut
 * back to an earlier seal, replaced or deleted is found by it. Many processes write to it, one
 * at a time, under a lock that each holds for one record.
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

/* Below the directory `runs`. A torn last line, left by a crash, is cut off and noted. */
int journal_index_add(int runs, const struct journal_index_record *record, bool must_sync,
        struct carrel_error *err);

/* Opens the directory of all runs; the second makes it when it is missing. */
int journal_open_runs(const char *path, struct carrel_error *err);
int journal_make_runs(const char *path, struct carrel_error *err);
