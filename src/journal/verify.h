/* verify.h - whether a journal is what was written. */
#pragma once
#include "journal/key.h"
#include "journal/line.h"
#include "journal/lines.h"

enum journal_state {
    JOURNAL_SEALED,      /* whole, and its last record is a seal */
    JOURNAL_UNSEALED,    /* right up to its last record: the run was killed */
    JOURNAL_IN_PROGRESS, /* the same, and somebody is writing */
    JOURNAL_BAD,
    JOURNAL_MISSING, /* the index knows it, and it is not there */
    JOURNAL_PRUNED,  /* removed on purpose */
};
const char *journal_state_name(enum journal_state state);

/* A seal that the index has. */
struct journal_seal {
    char hash[JOURNAL_HASH];
    uint64_t records; /* with it */
};

/* What is known beforehand. All of it may be left out. */
struct journal_known {
    const char *run;                   /* whose journal it must be */
    const struct journal_trust *trust; /* who must have signed */
    const struct journal_seal *seals;  /* those that it must have, in this order */
    size_t n_seals;
    bool is_index;      /* it is an index: of many runs, and never sealed */
    uint64_t max_bytes; /* not to be read further; 0: to its end */
};

struct journal_verdict {
    enum journal_state state;
    struct journal_chain chain; /* after the last record that is right */
    uint64_t records;           /* how many are right */
    uint64_t bytes;             /* and their length */
    uint64_t torn_bytes;        /* what follows them without being a whole line */
    uint64_t bad_record;        /* the number of the first bad one; 0: none is */
    uint64_t n_recovered;       /* records that tell of something lost in a crash */
    bool has_known_seal;        /* the one that the index has is its last */
    char why[300];              /* what is bad, or what else is to say; may be "" */
};

/* Reads a journal and checks it on the way. */
struct journal_reader {
    int fd; /* not ours */
    struct journal_known known;
    struct journal_lines lines;
    struct journal_verdict verdict; /* so far; see journal_reader_judge() for its state */
    bool was_in_progress;           /* at the beginning */
    size_t n_seals;                 /* of those that must be there were seen */
};

struct journal_reader journal_reader_of(int fd, const struct journal_known *known);
void journal_reader_finish(struct journal_reader reader);
DEFINE_AUTO(struct journal_reader, journal_reader_finish)

/*
 * The next record, which is right; good until the next call. Returns 1; 0 at the end, or where
 * the verdict is bad; a negative errno when the file cannot be read. After the end it may be
 * called again, for what has come since.
 */
int journal_reader_next(
        struct journal_reader *reader, struct journal_line *out, struct carrel_error *err);

/* The verdict, after the end. */
void journal_reader_judge(struct journal_reader *reader, struct journal_verdict *out);

/* All of it. A verdict is no error: those are about files that cannot be read. */
int journal_verify(int fd, const struct journal_known *known, struct journal_verdict *out,
        struct carrel_error *err);
