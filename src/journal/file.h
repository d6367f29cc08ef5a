/*
 * file.h - a file of records that only grows: the journal of a run, the index.
 *
 * Each line goes into the file with one write. Where that fails, the file is cut back to its
 * last whole line, and nothing more is taken.
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
    int error; /* what ended the writing, once something did */
    struct buf line;
    struct json json;
};

/* Takes over `fd`, also when it fails. */
void journal_file_init(struct journal_file *file, int fd, const char *name);
void journal_file_finish(struct journal_file file);
DEFINE_AUTO(struct journal_file, journal_file_finish)

/* What a crash left behind the last whole line, and was cut off. */
struct journal_torn {
    uint64_t bytes; /* 0: nothing */
    char sha256[2 * SHA256_BYTES + 1];
};

/*
 * Finds the last line, which must be a record with the right hash (of `run`, unless that is
 * NULL), to go on after it. An empty file is fine. -EBADMSG: it is not ours to continue.
 */
int journal_file_resume(struct journal_file *file, const char *run, struct journal_torn *torn,
        struct carrel_error *err);

/* One record: its members go into what begin returns. */
struct json *journal_file_begin(struct journal_file *file, const char *run, const char *event);
int journal_file_add(struct journal_file *file, struct carrel_error *err);

/* A record ("event") of what was cut off, if anything was. */
int journal_file_note_torn(struct journal_file *file, const char *run, const char *event,
        const struct journal_torn *torn, struct carrel_error *err);

int journal_file_sync(struct journal_file *file, struct carrel_error *err);

/*
 * Locks the whole of an open file for writing, until its last descriptor is closed.
 * -EWOULDBLOCK: another has it.
 */
int journal_lock_try(int fd);
int journal_lock_wait(int fd);
int journal_lock_shared(int fd); /* waits until nobody writes, and keeps writers waiting */
void journal_unlock(int fd);
bool journal_lock_is_held(int fd); /* by somebody else; takes nothing */
