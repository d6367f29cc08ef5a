/*
 * line.h - one record as a line of text: how it is written, and how it is checked.
 *
 *   {"seq":N,"time":"…Z","run":"…","event":"…" … ,"prev":"<64 hex>","hash":"<64 hex>"}
 *
 * Both ends have one form only, byte for byte. hash is the SHA-256 of everything before
 * `,"hash":`; prev is the hash of the previous line, or zeros.
 */
#pragma once
#include "base/buf.h"
#include "base/json.h"
#include "base/json_read.h"
#include "journal/journal.h"

struct journal_trust;

/* The state after a number of lines; before the first all zero except `run` (any: ""). */
struct journal_chain {
    char run[JOURNAL_RUN]; /* every line must name it */
    bool has_many_runs;    /* the index: each line may name another */
    uint64_t seq;          /* of the last line; 0: none yet */
    char head[JOURNAL_HASH];
    bool is_sealed;              /* the last line is a seal */
    char seal[JOURNAL_HASH];     /* the last seal; "": none */
    char signer[JOURNAL_KEY];    /* of that seal: the public key in hex; "": not signed */
    char time[JOURNAL_TIME_MAX]; /* of the last line */
};

/* The parts of a well-formed line. */
struct journal_line {
    uint64_t seq;
    struct json_value whole;
    struct json_value time, run, event; /* without their quotes; none has an escape */
    size_t covered;                     /* how many bytes the hash covers */
    size_t before_prev;                 /* the offset of `,"prev":` */
    const char *prev, *hash;            /* 64 digits each */
};

/* Writes the beginning of a line into `out`, which is cleared first; add members to *json. */
void journal_line_begin(
        struct buf *out, struct json *json, uint64_t seq, const char *run, const char *event);

/* Writes its end, with the newline. `hash` becomes that of this line. */
void journal_line_end(struct buf *out, const char *prev, char hash[static JOURNAL_HASH]);

/*
 * Checks the form alone: both ends, JSON in between, and no character that controls a terminal,
 * as the writer escapes those. `line` has no newline. -EBADMSG.
 */
int journal_line_parse(
        const char *line, size_t len, struct journal_line *out, struct carrel_error *err);

/*
 * Checks form, hash, position in the chain and, of a seal, figures and signature. On success
 * `chain` advances by one line, otherwise it is unchanged. If `trust` is NULL, any key may have
 * signed.
 */
int journal_line_check(struct journal_chain *chain, const struct journal_trust *trust,
        const char *text, size_t len, struct journal_line *out, struct carrel_error *err);

bool journal_line_is(const struct journal_line *line, const char *event);

/* Letters, digits, '.', '_' and '-', at most 64, not beginning with a dot. */
bool journal_is_run(const char *text, size_t len);

extern const char journal_no_hash[JOURNAL_HASH]; /* 64 zeros: before the first line */
