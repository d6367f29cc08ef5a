/* reader.c - a journal from its first record to its verdict, also while it grows. */
#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "core/record/verdict.h"
#include "journal/file.h"
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <unistd.h>

#define WAIT_MS 500
#define RECORD_TEXT_MAX (2 * (size_t)JOURNAL_RECORD_MAX)

struct carrel_journal_reader {
    struct journals *journals;
    struct journal_ref ref;
    struct journal_trust trust;
    struct journal_known known;
    struct journal_reader reader;
    int watch; /* -1: carrel_journal_wait() was not called yet */
    bool is_begun;
    struct buf text; /* of the last record */
    struct carrel_journal_record record;
    struct verdict_view verdict;
};
DEFINE_AUTO(struct carrel_journal_reader *, carrel_journal_free)

void carrel_journal_free(struct carrel_journal_reader *reader)
{
    if (!reader)
        return;
    if (reader->is_begun)
        journal_reader_finish(reader->reader);
    fd_close(reader->watch);
    buf_finish(reader->text);
    journal_ref_finish(reader->ref);
    journals_close(reader->journals);
    free(reader);
}

static int say_missing(const struct journal_ref *ref, struct carrel_error *err)
{
    (void)err_set(err, -ENOENT, "the journal of run '%s' %s", ref->run,
            ref->entry->is_pruned ? "was pruned" : "is missing, but the index lists the run");
    return err_from(err, -ENOENT, CARREL_FROM_CALLER);
}

int carrel_journal_open(const char *word, const char *key, struct carrel_journal_reader **out,
        struct carrel_error *err)
{
    AUTO(carrel_journal_free)
    struct carrel_journal_reader *reader = calloc(1, sizeof(*reader));

    err = ERR_OR_IGNORED(err);
    if (!reader)
        return err_set_errno(err, -ENOMEM, "journal");
    reader->ref.fd = reader->watch = -1;
    reader->text = BUF_INIT(RECORD_TEXT_MAX);
    int r = journals_open(&reader->journals, err);
    if (r == 0)
        r = journals_find(reader->journals, word, &reader->ref, err);
    if (r < 0)
        return r;
    const struct journal_ref *ref = &reader->ref;
    if (ref->fd < 0)
        return say_missing(ref, err);
    reader->known = ref->run[0] ? journal_run_known(ref->run, ref->entry)
                                : (struct journal_known){ .is_index = ref->is_index };
    r = journals_trust(key, &reader->trust, err);
    if (r < 0)
        return r;
    if (r > 0)
        reader->known.trust = &reader->trust;
    reader->reader = journal_reader_of(ref->fd, &reader->known);
    reader->is_begun = true;
    *out = ptr_steal(&reader);
    return 0;
}

const char *carrel_journal_key(const struct carrel_journal_reader *reader)
{
    return reader->ref.run[0] ? reader->ref.run : NULL;
}

/* The line, its time and its event, each with a NUL at its end. */
static int copy(struct carrel_journal_reader *reader, const struct journal_line *line,
        struct carrel_error *err)
{
    const struct json_value parts[] = { line->whole, line->time, line->event };
    size_t at[ARRAY_LEN(parts)];

    buf_clear(&reader->text);
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        at[i] = reader->text.len;
        buf_add(&reader->text, parts[i].text, parts[i].len);
        buf_add(&reader->text, "", 1);
    }
    if (reader->text.is_short)
        return err_set_errno(err, -ENOMEM, "record");
    reader->record = (struct carrel_journal_record){
        .size = sizeof(reader->record),
        .seq = line->seq,
        .json = reader->text.data + at[0],
        .json_len = line->whole.len,
        .time = reader->text.data + at[1],
        .event = reader->text.data + at[2],
    };
    return 0;
}

int carrel_journal_next(struct carrel_journal_reader *reader,
        const struct carrel_journal_record **out, struct carrel_error *err)
{
    struct journal_line line;

    err = ERR_OR_IGNORED(err);
    int r = journal_reader_next(&reader->reader, &line, err);
    if (r <= 0)
        return r;
    r = copy(reader, &line, err);
    if (r < 0)
        return r;
    *out = &reader->record;
    return 1;
}

static int watch_file(int fd, struct carrel_error *err)
{
    char path[64];

    AUTO(fd_close) int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (watch < 0)
        return err_set_errno(err, -errno, "inotify");
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (inotify_add_watch(watch, path, IN_MODIFY | IN_CLOSE_WRITE) < 0)
        return err_set_errno(err, -errno, "watch the journal");
    return fd_steal(&watch);
}

/*
 * Waits until the file may have grown or its writer may have exited. inotify reports a close
 * before the lock is released, so there is another look a moment later.
 */
static int wait_for_more(int watch, struct carrel_error *err)
{
    struct pollfd poll_fd = { .fd = watch, .events = POLLIN };
    char events[4096];

    if (poll(&poll_fd, 1, WAIT_MS) < 0 && errno != EINTR)
        return err_set_errno(err, -errno, "poll");
    if (poll_fd.revents & POLLIN)
        (void)!read(watch, events, sizeof(events)); /* only that there were events matters */
    return 0;
}

int carrel_journal_wait(struct carrel_journal_reader *reader, struct carrel_error *err)
{
    struct journal_reader *own = &reader->reader;
    struct journal_verdict verdict;

    err = ERR_OR_IGNORED(err);
    journal_reader_judge(own, &verdict);
    if (verdict.state == CARREL_RECORD_BAD || !own->was_in_progress)
        return 0;
    if (reader->watch < 0) { /* what came before it is read without a wait */
        int watch = watch_file(own->fd, err);
        if (watch < 0)
            return watch;
        reader->watch = watch;
    } else {
        int r = wait_for_more(reader->watch, err);
        if (r < 0)
            return r;
    }
    /* Before the records are read: what comes after the last look would be missed. */
    own->was_in_progress = journal_lock_is_held(own->fd);
    return 1;
}

static int read_rest(struct carrel_journal_reader *reader, struct carrel_error *err)
{
    struct journal_line line;
    int r;

    do
        r = journal_reader_next(&reader->reader, &line, err);
    while (r > 0);
    return r;
}

static int judge(struct carrel_journal_reader *reader, struct carrel_error *err)
{
    struct journal_verdict *verdict = &reader->verdict.own;

    journal_reader_judge(&reader->reader, verdict);
    if (!reader->ref.run[0])
        return 0;
    journal_run_judge(reader->ref.entry, verdict);
    if (verdict->state != CARREL_RECORD_UNSEALED || !verdict->chain.is_sealed)
        return 0;
    return journals_verify(
            &reader->ref, reader->known.trust, verdict, err); /* has a later index */
}

int carrel_journal_judge(struct carrel_journal_reader *reader,
        const struct carrel_journal_verdict **out, struct carrel_error *err)
{
    err = ERR_OR_IGNORED(err);
    int r = judge(reader, err);
    if (r < 0)
        return r;
    verdict_view_fill(&reader->verdict, &reader->ref);
    *out = &reader->verdict.public;
    return 0;
}

/* The file as it is, up to `limit`. */
static int copy_bytes(int from, uint64_t limit, int to, struct carrel_error *err)
{
    char chunk[16384];

    for (uint64_t at = 0; at < limit;) {
        size_t want = limit - at < sizeof(chunk) ? (size_t)(limit - at) : sizeof(chunk);
        ssize_t n = pread(from, chunk, want, (off_t)at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_set_errno(err, -errno, "read the journal");
        if (n == 0)
            break;
        int r = fd_write_all(to, chunk, (size_t)n);
        if (r < 0)
            return err_set_errno(err, r, "write the export");
        at += (uint64_t)n;
    }
    return 0;
}

int carrel_journal_export(struct carrel_journal_reader *reader, enum carrel_export what, int fd,
        struct carrel_error *err)
{
    const struct journal_verdict *verdict = &reader->verdict.own;

    err = ERR_OR_IGNORED(err);
    int r = read_rest(reader, err);
    if (r == 0)
        r = judge(reader, err);
    if (r < 0)
        return r;
    bool is_bad = verdict->state == CARREL_RECORD_BAD;
    if (is_bad && what != CARREL_EXPORT_FORCE)
        return err_set(
                err, -EBADMSG, "record %" PRIu64 ": %s", verdict->bad_record, verdict->why);
    return copy_bytes(reader->ref.fd, is_bad ? UINT64_MAX : verdict->bytes, fd, err);
}
