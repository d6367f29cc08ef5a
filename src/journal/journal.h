/*
 * journal.h - a tamper-evident record of a run, written by the host: append-only, one JSON
 * object per line, each with the hash of the previous one.
 *
 * A run's records are in RUNS/<run>/journal.jsonl; RUNS/index.jsonl names every run, begun and
 * ended. A record is
 *
 *   {"seq":1,"time":"…Z","run":"R-…","event":"run_started",…,"prev":"<hex>","hash":"<hex>"}
 *
 * where hash is the SHA-256 of the line's bytes before `,"hash":`. The last record is a seal
 * ("sealed") with the number of records and the head, and a signature if there is a key. A run
 * that is continued uses the same chain, after its seal, and is sealed again.
 */
#pragma once
#include "base/auto.h"
#include "base/json.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct carrel_error;
struct journal;
struct journal_key;

#define JOURNAL_HASH 65     /* 64 hex digits and a NUL */
#define JOURNAL_KEY 65      /* a public key in the same way */
#define JOURNAL_RUN 160     /* the id of a run, or of a task and a run */
#define JOURNAL_TIME_MAX 28 /* as clock_stamp() writes it */
#define JOURNAL_RECORD_MAX (256U << 10)

enum journal_fsync { JOURNAL_FSYNC_NEVER, JOURNAL_FSYNC_END, JOURNAL_FSYNC_ALWAYS };

struct journal_options {
    const char *runs; /* the directory of all runs; created if missing, its parent must exist */
    const char *run;  /* its id: letters, digits, '.', '_', '-', at most 64 */
    const char *task; /* the same; NULL: none */
    enum journal_fsync fsync;
    uint64_t max_bytes;            /* of the file; 0: no limit. See journal_add() */
    const struct journal_key *key; /* NULL: seals are not signed */
};

/*
 * Creates the run's directory and journal, or continues an existing one, whose last record must
 * be whole and chained. The file stays locked until journal_close(), which marks the run as in
 * progress; -EBUSY if it is. The index has recorded the run before this returns.
 */
int journal_open(
        const struct journal_options *options, struct journal **out, struct carrel_error *err);

/* Whether there were records before: the run is continued. */
bool journal_is_continued(const struct journal *journal);

/*
 * One record: begin returns the writer for the event's own members, add writes the line. A line
 * is whole or absent. After a failure every further call fails, so that nothing happens
 * unrecorded. -EFBIG: max_bytes is reached, the run must stop; a seal is still accepted, so
 * that its end is recorded.
 */
struct json *journal_begin(struct journal *journal, const char *event);
int journal_add(struct journal *journal, struct carrel_error *err);

/*
 * Text of any size in a record: at most `max` bytes of it (six times that if all must be
 * escaped). If it was truncated, or is not valid UTF-8 and so not shown unchanged, its length
 * and SHA-256 follow as KEY_bytes and KEY_sha256.
 */
void journal_text(struct json *json, const char *key, const char *text, size_t len, size_t max);

/*
 * A NULL-terminated list of words as an array, in the same way: KEY_count, KEY_bytes and
 * KEY_sha256 cover all words with the NUL after each.
 */
void journal_words(struct json *json, const char *key, const char *const *words, size_t max);

/*
 * The last record. `reason` and the figures are also written to the index. `seal` gets its
 * hash. Records may follow; they need another seal.
 */
int journal_seal(struct journal *journal, const char *reason, char seal[static JOURNAL_HASH],
        struct carrel_error *err);

/* Notes in the index that a run was removed on purpose; the caller removes it afterwards. */
int journal_note_pruned(const char *runs, const char *run, struct carrel_error *err);

/*
 * Unlocks. A journal that was not sealed remains unsealed, and verify reports it. NULL is fine.
 */
void journal_close(struct journal *journal);
DEFINE_AUTO(struct journal *, journal_close)
