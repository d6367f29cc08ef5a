/*
 * file.h - an append-only file of records: the journal of a run, or the index.
 *
 * Each line is appended with one write. If that fails, the file is truncated to its last whole
 * line, and every further record is refused.
 */
#pragma once
#include "base/buf.h"
#include "base/json.h"
#include "base/sha256.h"
#include "journal/journal.h"

struct journal_file {
    int fd; /* opened with O_RDWR and O_APPEND, and locked */
    const char *name;
    uint64_t size; /* up to the end of the last whole line */
    uint64_t seq;
    char head[JOURNAL_HASH];
    int error; /* the error of the first failed write; 0: none */
    struct buf line;
    struct json json;
};

/* Takes over `fd`, also when it fails. */
void journal_file_init(struct journal_file *file, int fd, const char *name);
void journal_file_finish(struct journal_file file);
DEFINE_AUTO(struct journal_file, journal_file_finish)

/* What a crash left after the last whole line, and was truncated. */
struct journal_torn {
    uint64_t bytes; /* 0: nothing */
    char sha256[SHA256_HEX];
};

/*
 * Finds the last line, which must be a record with the right hash (of `run`, unless that is
 * NULL), to continue after it. An empty file is fine. -EBADMSG: it must not be continued.
 */
int journal_file_resume(struct journal_file *file, const char *run, struct journal_torn *torn,
        struct carrel_error *err);

/* One record: its members are added to what begin returns. */
struct json *journal_file_begin(struct journal_file *file, const char *run, const char *event);
int journal_file_add(struct journal_file *file, struct carrel_error *err);

/* A record ("event") about what was truncated, if anything was. */
int journal_file_note_torn(struct journal_file *file, const char *run, const char *event,
        const struct journal_torn *torn, struct carrel_error *err);

int journal_file_sync(struct journal_file *file, struct carrel_error *err);

/*
 * Locks the whole file for writing, until its last descriptor is closed. -EWOULDBLOCK: another
 * process has the lock.
 */
int journal_lock_try(int fd);
int journal_lock_wait(int fd);
int journal_lock_shared(int fd); /* waits until no process writes, and blocks writers */
void journal_unlock(int fd);
bool journal_lock_is_held(int fd); /* by another process; takes no lock */
