/* journal.c - writes the journal of one run. */
#include "journal/journal.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/sha256.h"
#include "base/utf8.h"
#include "journal/file.h"
#include "journal/index.h"
#include "journal/key.h"
#include "journal/line.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

struct journal {
    int runs;
    int dir; /* of the run */
    struct journal_file file;
    char run[JOURNAL_RUN];
    enum journal_fsync fsync;
    uint64_t max_bytes;
    const struct journal_key *key;
    bool is_continued;
    bool is_full; /* max_bytes was reached */
};

void journal_close(struct journal *journal)
{
    if (!journal)
        return;
    journal_file_finish(journal->file);
    fd_close(journal->dir);
    fd_close(journal->runs);
    free(journal);
}

/* ENOENT for what we have just created means that it was stale_if_missing again. */
static int stale_if_missing(int code)
{
    return code == ENOENT ? -ESTALE : -code;
}

static int open_dir(struct journal *journal, struct carrel_error *err)
{
    fd_close(fd_steal(&journal->dir));
    if (mkdirat(journal->runs, journal->run, 0700) < 0 && errno != EEXIST)
        return err_set_errno(err, -errno, "create the directory '%s'", journal->run);
    journal->dir = openat(
            journal->runs, journal->run, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (journal->dir < 0)
        return err_set_errno(
                err, stale_if_missing(errno), "open the directory '%s'", journal->run);
    return 0;
}

static int open_file(struct journal *journal, struct carrel_error *err)
{
    struct stat st;

    AUTO(fd_close)
    int fd = openat(journal->dir, JOURNAL_NAME,
            O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_set_errno(err, stale_if_missing(errno), "open '%s'", JOURNAL_NAME);
    int r = journal_lock_try(fd);
    if (r == -EWOULDBLOCK)
        return err_set(err, -EBUSY, "the run is in progress");
    if (r < 0)
        return err_set_errno(err, r, "lock '%s'", JOURNAL_NAME);
    if (fstat(fd, &st) < 0)
        return err_set_errno(err, -errno, "stat '%s'", JOURNAL_NAME);
    if (!S_ISREG(st.st_mode))
        return err_set(err, -EINVAL, "'%s' is not a regular file", JOURNAL_NAME);
    if (st.st_nlink == 0)
        return err_set_errno(err, -ESTALE, "open '%s'", JOURNAL_NAME);
    journal_file_init(&journal->file, fd_steal(&fd), JOURNAL_NAME);
    return 0;
}

/*
 * Opens and locks it. A prune may remove the directory of an earlier run between any two calls.
 */
static int open_locked(struct journal *journal, struct carrel_error *err)
{
    int r = -ESTALE;

    for (int tries = 0; r == -ESTALE && tries < 100; tries++) {
        r = open_dir(journal, err);
        if (r == 0)
            r = open_file(journal, err);
    }
    return r;
}

/* The file, and the directories up to it. */
static int sync_all(struct journal *journal, struct carrel_error *err)
{
    int r = journal_file_sync(&journal->file, err);
    if (r < 0)
        return r;
    if (fsync(journal->dir) < 0 || fsync(journal->runs) < 0)
        return err_set_errno(err, -errno, "write the run's directory to the disk");
    return 0;
}

static int begin_run(struct journal *journal, const struct journal_options *options,
        struct carrel_error *err)
{
    struct journal_torn torn;

    int r = journal_file_resume(&journal->file, journal->run, &torn, err);
    if (r == -EBADMSG)
        return err_wrap(err, r,
                "it cannot be continued; see 'carrel journal verify', and move the file away "
                "to continue the run");
    if (r < 0)
        return r;
    journal->is_continued = journal->file.seq > 0;
    const struct journal_index_record record = {
        .event = journal->is_continued ? "run_continued" : "run_begun",
        .run = journal->run,
        .task = options->task,
    };
    r = journal_index_add(journal->runs, &record, journal->fsync == JOURNAL_FSYNC_ALWAYS, err);
    if (r == 0)
        r = journal_file_note_torn(&journal->file, journal->run, "recovered", &torn, err);
    if (r == 0 && journal->fsync == JOURNAL_FSYNC_ALWAYS)
        r = sync_all(journal, err);
    if (r < 0 && journal->file.seq == 0) { /* the run never began */
        (void)unlinkat(journal->dir, JOURNAL_NAME, 0);
        (void)unlinkat(journal->runs, journal->run, AT_REMOVEDIR); /* unless not empty */
    }
    return r;
}

int journal_open(
        const struct journal_options *options, struct journal **out, struct carrel_error *err)
{
    if (!journal_is_run(options->run, strlen(options->run)) ||
            (options->task && !journal_is_run(options->task, strlen(options->task))))
        return err_set(err, -EINVAL, "open journal: not a valid run or task id");
    AUTO(journal_close) struct journal *journal = calloc(1, sizeof(*journal));
    if (!journal)
        return err_set_errno(err, -ENOMEM, "open journal");
    journal->runs = -1;
    journal->dir = -1;
    journal->file.fd = -1;
    (void)stpcpy(journal->run, options->run);
    journal->fsync = options->fsync;
    journal->max_bytes = options->max_bytes;
    journal->key = options->key;

    int r = journal->runs = journal_make_runs(options->runs, err);
    if (r >= 0)
        r = open_locked(journal, err);
    if (r >= 0)
        r = begin_run(journal, options, err);
    if (r < 0)
        return err_wrap(err, r, "journal of run '%s'", options->run);
    *out = ptr_steal(&journal);
    return 0;
}

bool journal_is_continued(const struct journal *journal)
{
    return journal->is_continued;
}

struct json *journal_begin(struct journal *journal, const char *event)
{
    assert(strcmp(event, "sealed") != 0);
    return journal_file_begin(&journal->file, journal->run, event);
}

/* Approximate size of the end of a line: max_bytes need not be exact. */
#define LINE_END 170

int journal_add(struct journal *journal, struct carrel_error *err)
{
    struct journal_file *file = &journal->file;

    if (journal->max_bytes > 0 && file->size + file->line.len + LINE_END > journal->max_bytes)
        journal->is_full = true;
    if (journal->is_full && file->error == 0)
        return err_set(err, -EFBIG, "the journal of run '%s' is full", journal->run);
    int r = journal_file_add(file, err);
    if (r == 0 && journal->fsync == JOURNAL_FSYNC_ALWAYS)
        r = journal_file_sync(file, err);
    return r < 0 ? err_wrap(err, r, "journal of run '%s'", journal->run) : 0;
}

static int seal(struct journal *journal, const char *reason, struct carrel_error *err)
{
    struct journal_file *file = &journal->file;
    struct json *json = journal_file_begin(file, journal->run, "sealed");

    json_str(json, "reason", reason);
    json_u64(json, "records", file->seq + 1);
    json_str(json, "head", file->head);
    int r = journal->key ? journal_sign(journal->key, json, err) : 0;
    if (r == 0)
        r = journal_file_add(file, err);
    if (r == 0 && journal->fsync != JOURNAL_FSYNC_NEVER)
        r = sync_all(journal, err);
    if (r < 0)
        return r;
    const struct journal_index_record record = {
        .event = "run_sealed",
        .run = journal->run,
        .reason = reason,
        .seal = file->head,
        .records = file->seq,
    };
    return journal_index_add(
            journal->runs, &record, journal->fsync != JOURNAL_FSYNC_NEVER, err);
}

int journal_seal(struct journal *journal, const char *reason,
        char seal_hash[static JOURNAL_HASH], struct carrel_error *err)
{
    int r = seal(journal, reason, err);
    if (r < 0) {
        if (journal->file.error == 0)
            journal->file.error = r;
        return err_wrap(err, r, "seal the journal of run '%s'", journal->run);
    }
    memcpy(seal_hash, journal->file.head, JOURNAL_HASH);
    return 0;
}

static void name(char out[static 64], const char *key, const char *what)
{
    (void)snprintf(out, 64, "%.40s_%s", key, what);
}

static void write_rest(struct json *json, const char *key, uint64_t bytes, struct sha256 *sha)
{
    char hex[SHA256_HEX];
    char member[64];

    sha256_finish_hex(sha, hex);
    name(member, key, "bytes");
    json_u64(json, member, bytes);
    name(member, key, "sha256");
    json_str(json, member, hex);
}

/* The length of at most `max` bytes that splits no character. */
static size_t cut(const char *text, size_t len, size_t max)
{
    if (len <= max)
        return len;
    size_t n = max;
    while (n > 0 && max - n < 3 && ((unsigned char)text[n] & 0xc0) == 0x80)
        n--;
    return ((unsigned char)text[n] & 0xc0) == 0x80 ? max : n;
}

void journal_text(struct json *json, const char *key, const char *text, size_t len, size_t max)
{
    struct sha256 sha;

    size_t n = cut(text, len, max);
    json_bytes(json, key, text, n);
    if (n == len && utf8_is_text(text, len))
        return;
    sha256_init(&sha);
    sha256_add(&sha, text, len);
    write_rest(json, key, len, &sha);
}

void journal_words(struct json *json, const char *key, const char *const *words, size_t max)
{
    enum { QUOTES = 3 }; /* and the comma: many empty words are long, too */
    struct sha256 sha;
    uint64_t bytes = 0;
    uint64_t count = 0;
    bool is_cut = false;
    bool is_text = true;
    char member[64];

    json_array(json, key);
    for (const char *const *word = words; *word; word++) {
        size_t len = strlen(*word);
        bytes += len + 1;
        count++;
        if (is_cut || max < QUOTES) {
            is_cut = true;
            continue;
        }
        max -= QUOTES;
        size_t n = cut(*word, len, max);
        json_bytes(json, NULL, *word, n);
        is_cut = n < len;
        is_text = is_text && utf8_is_text(*word, len);
        max -= n;
    }
    json_end_array(json);
    if (!is_cut && is_text)
        return;
    sha256_init(&sha);
    for (const char *const *word = words; *word; word++)
        sha256_add(&sha, *word, strlen(*word) + 1);
    name(member, key, "count");
    json_u64(json, member, count);
    write_rest(json, key, bytes, &sha);
}
