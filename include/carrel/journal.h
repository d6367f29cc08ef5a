/*
 * journal.h - past runs, and the tamper-evident record that each of them leaves.
 *
 * A run is known by its key, "R" or "T+R". Its journal has one record per step, each with the
 * hash of the one before; the last one is the seal. An index records the seals of all runs.
 */
#pragma once
#include <carrel/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum carrel_record_state {
    CARREL_RECORD_SEALED,      /* complete */
    CARREL_RECORD_UNSEALED,    /* valid up to its last record: carrel was killed */
    CARREL_RECORD_IN_PROGRESS, /* the same, and a process is writing */
    CARREL_RECORD_BAD,         /* a record was changed, removed or moved */
    CARREL_RECORD_MISSING,     /* the index knows it, and the journal does not exist */
    CARREL_RECORD_PRUNED,      /* removed by carrel */
    CARREL_RECORD_NONE,        /* the run was not recorded; only its output was kept */
};

/* "sealed" "unsealed" "in progress" "bad" "missing" "pruned" "not recorded" */
CARREL_PUBLIC const char *carrel_record_state_name(enum carrel_record_state state);

/* --- runs --- */

/* What is known about a run, as its journal says it, not verified. Text is NULL if unknown. */
struct carrel_run_info {
    size_t size; /* of this struct */
    const char *key;
    const char *task;
    enum carrel_record_state state;
    const char *began;  /* "2026-01-31T23:59:59.000000Z" */
    int64_t began_s;    /* the same since 1970 */
    const char *reason; /* of its end */
    bool has_status;
    int64_t status; /* exit status */
    bool has_duration;
    uint64_t duration_ms;
    uint64_t bytes;   /* of all files of the run */
    const char *argv; /* a JSON array */
};

/*
 * Calls `visit` for every run, newest first. A non-zero answer of `visit` ends the walk and is
 * returned.
 */
CARREL_PUBLIC int carrel_runs_each(
        int (*visit)(const struct carrel_run_info *info, void *context), void *context,
        struct carrel_error *err);

struct carrel_run_record; /* a handle */

/* `word`: its key, "T/R", or how its key begins. -ENOENT: none; -EINVAL: several. */
CARREL_PUBLIC int carrel_runs_find(
        const char *word, struct carrel_run_record **out, struct carrel_error *err);
CARREL_PUBLIC void carrel_runs_free(struct carrel_run_record *run); /* NULL is fine */

/* These belong to the handle. */
CARREL_PUBLIC const struct carrel_run_info *carrel_runs_info(
        const struct carrel_run_record *run);
CARREL_PUBLIC const char *carrel_runs_directory(const struct carrel_run_record *run);

/* The files of a run: `name` is relative to its directory. */
CARREL_PUBLIC int carrel_runs_each_file(const struct carrel_run_record *run,
        int (*visit)(const char *name, uint64_t bytes, void *context), void *context,
        struct carrel_error *err);

/*
 * The newest result that was kept, as one JSON value, see carrel_run_result_json(); freed with
 * carrel_free(). Returns 1; 0 if none was kept, and *out is not changed.
 */
CARREL_PUBLIC int carrel_runs_result(
        const struct carrel_run_record *run, char **out, struct carrel_error *err);

struct carrel_runs_prune_options {
    size_t size;           /* of this struct, filled in by the INIT macro */
    uint64_t older_than_s; /* only runs that began longer ago */
    uint64_t keep;         /* keep so many of the newest */
    bool is_dry_run;       /* remove nothing */
};

#define CARREL_RUNS_PRUNE_OPTIONS_INIT                                                         \
    {                                                                                          \
        .size = sizeof(struct carrel_runs_prune_options)                                       \
    }

/*
 * Removes runs, notes that in the index, and calls `visit` (NULL: none) for each. Keeps those
 * in progress, and those whose workspace exists. A non-zero answer of `visit` ends the walk and
 * is returned.
 */
CARREL_PUBLIC int carrel_runs_prune(const struct carrel_runs_prune_options *options,
        int (*visit)(const struct carrel_run_info *info, void *context), void *context,
        struct carrel_error *err);

/* --- journals --- */

/* What the index says of a run. Text is NULL if there is none. */
struct carrel_journal_info {
    size_t size; /* of this struct */
    const char *key;
    const char *task;
    enum carrel_record_state state; /* without a look at the records */
    const char *began;              /* times as in struct carrel_run_info */
    const char *sealed;             /* the last time */
    const char *reason;             /* of the last seal */
    const char *seal;               /* its hash */
    uint64_t n_records;             /* up to it */
};

/*
 * Calls `visit` for every run of the index, in the order in which they began. A non-zero answer
 * of `visit` ends the walk and is returned. -EBADMSG, after the walk: a record of the index is
 * bad, and `visit` has seen what is before it.
 */
CARREL_PUBLIC int carrel_journal_each(
        int (*visit)(const struct carrel_journal_info *info, void *context), void *context,
        struct carrel_error *err);

/* What a verification has found. Text is NULL if there is none. */
struct carrel_journal_verdict {
    size_t size;     /* of this struct */
    const char *key; /* of the run that its records name */
    bool is_file;    /* verified by itself: it was named by its path */
    bool is_index;   /* the index, or a copy of one, which has no seal */
    enum carrel_record_state state;
    uint64_t n_records;   /* that are valid */
    uint64_t n_recovered; /* of them about data lost in a crash */
    uint64_t torn_bytes;  /* an incomplete record after them */
    uint64_t bad_record;  /* the number of the first bad one; 0: none */
    const char *why;      /* what is wrong, or a remark */
    const char *head;     /* hash of the last valid record */
    const char *seal;     /* hash of the last seal */
    const char *signer;   /* public key that signed it, in hex */
    const char *key_id;   /* short name of that key */
};

/*
 * Verifies a journal. `word`: the key of a run, "T/R", how a key begins, or the path of a file.
 * A run is verified against the index, a file by itself. With NULL the index and all runs:
 * `visit` is called first for the index, then for each run, those that were pruned too. A
 * verdict is no error. `key`: the file of the public key that must have signed each seal; NULL:
 * the user's own if there is one, which must have signed each seal that is signed. A non-zero
 * answer of `visit` ends the walk and is returned.
 */
CARREL_PUBLIC int carrel_journal_verify(const char *word, const char *key,
        int (*visit)(const struct carrel_journal_verdict *verdict, void *context),
        void *context, struct carrel_error *err);

struct carrel_journal_reader; /* a handle */

/* Opens a journal to read and verify it; `word` and `key` as above. -ENOENT. */
CARREL_PUBLIC int carrel_journal_open(const char *word, const char *key,
        struct carrel_journal_reader **out, struct carrel_error *err);
CARREL_PUBLIC void carrel_journal_free(struct carrel_journal_reader *reader); /* NULL is fine */

/* The key of its run; NULL: it was opened by a path. */
CARREL_PUBLIC const char *carrel_journal_key(const struct carrel_journal_reader *reader);

/* A record that is valid and follows the one before it. */
struct carrel_journal_record {
    size_t size; /* of this struct */
    uint64_t seq;
    const char *time;
    const char *event;
    const char *json; /* all of it: one JSON object; no character in it controls a terminal */
    size_t json_len;
};

/*
 * The next record, which belongs to the reader and is valid until the next call. Returns 1; 0
 * at the end, which is before the first bad record. After the end it may be called again, for
 * records that were appended since.
 */
CARREL_PUBLIC int carrel_journal_next(struct carrel_journal_reader *reader,
        const struct carrel_journal_record **out, struct carrel_error *err);

/*
 * At the end: waits, at most half a second, for more. Returns 1: call carrel_journal_next()
 * again; 0: the run is over or a record is bad, so no more will come.
 */
CARREL_PUBLIC int carrel_journal_wait(
        struct carrel_journal_reader *reader, struct carrel_error *err);

/* At the end: the verdict. It belongs to the reader and is valid until the next call. */
CARREL_PUBLIC int carrel_journal_judge(struct carrel_journal_reader *reader,
        const struct carrel_journal_verdict **out, struct carrel_error *err);

enum carrel_export {
    CARREL_EXPORT_VALID, /* refuse (-EBADMSG) a journal with a bad record */
    CARREL_EXPORT_FORCE, /* write all its bytes then, unverified */
};

/*
 * At the end: writes the lines of all records to `fd`, for an archive that can be verified
 * anywhere.
 */
CARREL_PUBLIC int carrel_journal_export(struct carrel_journal_reader *reader,
        enum carrel_export what, int fd, struct carrel_error *err);

/* A pair of keys; the public one is beside the secret one, journal.pub. */
struct carrel_journal_keys {
    size_t size;      /* of this struct */
    const char *path; /* of the secret one */
    const char *public_hex;
    const char *id; /* short name */
};

/* Creates the pair that signs the seals of this user's runs. -EEXIST: there is one. */
CARREL_PUBLIC int carrel_journal_keygen(
        struct carrel_journal_keys **out, struct carrel_error *err);
CARREL_PUBLIC void carrel_journal_keys_free(
        struct carrel_journal_keys *keys); /* NULL is fine */

#ifdef __cplusplus
}
#endif
