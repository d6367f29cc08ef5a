/* runs.h - all runs, according to the index. */
#pragma once
#include "journal/verify.h"

struct journal_run {
    char run[JOURNAL_RUN];
    char task[JOURNAL_RUN];        /* "": none */
    char began[JOURNAL_TIME_MAX];  /* the first time, if it was continued */
    char sealed[JOURNAL_TIME_MAX]; /* the last time; "": never */
    char reason[32];               /* of the last seal */
    char seal[JOURNAL_HASH];       /* "": none */
    uint64_t records;              /* of it */
    struct journal_seal *seals;    /* all of them, in the order of the index */
    size_t n_seals;
    bool is_open; /* begun or continued, and not sealed since */
    bool is_pruned;
};

struct journal_runs {
    struct journal_run *items; /* in the order in which they began */
    size_t n;
    struct journal_verdict index; /* what was read up to the first bad record */
    size_t *slots;                /* by id: where in items, plus one; 0: free */
    size_t n_slots;
};

/* `dir` is the directory of all runs. -1, or a directory without an index, has no runs. */
int journal_runs_read(int dir, struct journal_runs **out, struct carrel_error *err);
void journal_runs_free(struct journal_runs *runs); /* NULL is fine */
DEFINE_AUTO(struct journal_runs *, journal_runs_free)

/* By its whole id; NULL: there is none. */
const struct journal_run *journal_runs_get(const struct journal_runs *runs, const char *run);

/* Opens the journal of a run for reading. */
int journal_open_run(int dir, const char *run, struct carrel_error *err);

/* The state without reading the journal: whether it exists and is locked. */
enum carrel_record_state journal_run_state(int dir, const struct journal_run *run);

/*
 * What the journal of `run` must contain according to the index entry `entry` (NULL: unknown),
 * and the final state of its verdict. A journal that the index does not know is bad unless it
 * is empty: such a run was killed before it began.
 */
struct journal_known journal_run_known(const char *run, const struct journal_run *entry);
void journal_run_judge(const struct journal_run *entry, struct journal_verdict *verdict);

/* Both together. fd is -1 if the journal is missing. */
int journal_verify_run(int fd, const char *run, const struct journal_run *entry,
        const struct journal_trust *trust, struct journal_verdict *out,
        struct carrel_error *err);
