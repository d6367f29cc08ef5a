/* verify.h - detects whether a journal was changed. */
#pragma once
#include "journal/key.h"
#include "journal/line.h"
#include "journal/lines.h"
#include <carrel/journal.h>

/* A seal in the index. */
struct journal_seal {
    char hash[JOURNAL_HASH];
    uint64_t records; /* with it */
};

/* What the caller expects. Every member may be left out. */
struct journal_known {
    const char *run;                   /* whose journal it must be */
    const struct journal_trust *trust; /* whose signatures count */
    const struct journal_seal *seals;  /* the seals that it must have, in this order */
    size_t n_seals;
    bool is_index;      /* it is an index: of many runs, and never sealed */
    uint64_t max_bytes; /* do not read further; 0: to its end */
};

struct journal_verdict {
    enum carrel_record_state state;
    struct journal_chain chain; /* after the last valid record */
    uint64_t records;           /* how many are valid */
    uint64_t bytes;             /* and their length */
    uint64_t torn_bytes;        /* an incomplete line after them */
    uint64_t bad_record;        /* the number of the first invalid one; 0: none */
    uint64_t n_recovered;       /* records about data lost in a crash */
    bool has_known_seal;        /* its last seal is the index's last one */
    char why[300];              /* what is wrong, or a remark; may be "" */
};

/* Reads a journal and checks it record by record. */
struct journal_reader {
    int fd; /* owned by the caller */
    struct journal_known known;
    struct journal_lines lines;
    struct journal_verdict verdict; /* so far; see journal_reader_judge() for its state */
    bool was_in_progress;           /* at the beginning */
    size_t n_seals;                 /* of the expected seals were seen */
};

struct journal_reader journal_reader_of(int fd, const struct journal_known *known);
void journal_reader_finish(struct journal_reader reader);
DEFINE_AUTO(struct journal_reader, journal_reader_finish)

/*
 * The next valid record; valid until the next call. Returns 1; 0 at the end, or if the verdict
 * is bad; a negative errno if the file cannot be read. After the end it may be called again,
 * for records that were appended since.
 */
int journal_reader_next(
        struct journal_reader *reader, struct journal_line *out, struct carrel_error *err);

/* The verdict, after the end. */
void journal_reader_judge(struct journal_reader *reader, struct journal_verdict *out);

/* All of it. A bad verdict is not an error: errors are about files that cannot be read. */
int journal_verify(int fd, const struct journal_known *known, struct journal_verdict *out,
        struct carrel_error *err);
