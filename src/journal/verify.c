/* verify.c - checks line by line, up to the first error. */
#include "journal/verify.h"
#include "base/err.h"
#include "base/fd.h"
#include "journal/file.h"
#include "journal/lines.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

const char *carrel_record_state_name(enum carrel_record_state state)
{
    static const char names[][16] = {
        [CARREL_RECORD_SEALED] = "sealed",
        [CARREL_RECORD_UNSEALED] = "unsealed",
        [CARREL_RECORD_IN_PROGRESS] = "in progress",
        [CARREL_RECORD_BAD] = "bad",
        [CARREL_RECORD_MISSING] = "missing",
        [CARREL_RECORD_PRUNED] = "pruned",
        [CARREL_RECORD_NONE] = "not recorded",
    };

    return state < ARRAY_LEN(names) ? names[state] : "unknown";
}

static void condemn(struct journal_verdict *verdict, uint64_t record, const char *why)
{
    verdict->state = CARREL_RECORD_BAD;
    verdict->bad_record = record;
    (void)snprintf(
            verdict->why, sizeof(verdict->why), "%.*s", (int)sizeof(verdict->why) - 1, why);
}

struct journal_reader journal_reader_of(int fd, const struct journal_known *known)
{
    struct journal_reader reader = {
        .fd = fd,
        .known = *known,
        .lines = journal_lines_of(fd),
        .verdict.chain.has_many_runs = known->is_index,
        .was_in_progress = !known->is_index && journal_lock_is_held(fd),
    };

    if (known->max_bytes > 0)
        reader.lines.limit = known->max_bytes;
    if (known->run)
        (void)snprintf(
                reader.verdict.chain.run, sizeof(reader.verdict.chain.run), "%s", known->run);
    reader.verdict.state = CARREL_RECORD_UNSEALED;
    return reader;
}

void journal_reader_finish(struct journal_reader reader)
{
    journal_lines_finish(reader.lines);
}

int journal_reader_next(
        struct journal_reader *reader, struct journal_line *out, struct carrel_error *err)
{
    struct journal_verdict *verdict = &reader->verdict;
    struct journal_chain *chain = &verdict->chain;
    struct carrel_error why = { 0 };
    const char *text;
    size_t len;

    if (verdict->state == CARREL_RECORD_BAD)
        return 0;
    int r = journal_lines_next(&reader->lines, &text, &len);
    verdict->torn_bytes = reader->lines.end - reader->lines.begin;
    if (r == -EMSGSIZE) {
        condemn(verdict, verdict->records + 1, "it is longer than any record");
        return 0;
    }
    if (r < 0)
        return err_set_errno(err, r, "read journal");
    if (r == 0)
        return 0;
    if (journal_line_check(chain, reader->known.trust, text, len, out, &why) < 0) {
        condemn(verdict, verdict->records + 1, why.message);
        return 0;
    }
    verdict->records++;
    verdict->bytes += len + 1;
    if (journal_line_is(out, "recovered") || journal_line_is(out, "torn"))
        verdict->n_recovered++;
    if (reader->n_seals < reader->known.n_seals && chain->is_sealed &&
            strcmp(chain->seal, reader->known.seals[reader->n_seals].hash) == 0)
        reader->n_seals++;
    return 1;
}

/*
 * Compares the index with what was found. All seals count: a journal that was truncated and
 * then continued has a valid last seal again.
 */
static void compare(
        const struct journal_known *known, size_t n_seen, struct journal_verdict *verdict)
{
    char why[200];

    if (known->n_seals == 0)
        return;
    verdict->has_known_seal =
            verdict->chain.is_sealed &&
            strcmp(verdict->chain.seal, known->seals[known->n_seals - 1].hash) == 0;
    if (n_seen == known->n_seals)
        return;
    const struct journal_seal *seal = &known->seals[n_seen];
    uint64_t record = verdict->records < seal->records ? verdict->records + 1 : seal->records;
    (void)snprintf(why, sizeof(why),
            "the index has a seal of %" PRIu64
            " records (%.16s…) that is not in it: it was truncated or replaced",
            seal->records, seal->hash);
    condemn(verdict, record, why);
}

static void tell_torn(struct journal_verdict *verdict)
{
    if (verdict->torn_bytes > 0)
        (void)snprintf(verdict->why, sizeof(verdict->why),
                "record %" PRIu64 " is cut short (%" PRIu64 " bytes of it)",
                verdict->records + 1, verdict->torn_bytes);
}

void journal_reader_judge(struct journal_reader *reader, struct journal_verdict *out)
{
    struct journal_verdict verdict = reader->verdict;

    if (verdict.state != CARREL_RECORD_BAD) {
        bool is_sealed = verdict.chain.is_sealed && verdict.torn_bytes == 0;
        if (reader->was_in_progress && (!is_sealed || journal_lock_is_held(reader->fd)))
            verdict.state = CARREL_RECORD_IN_PROGRESS;
        else if (is_sealed)
            verdict.state = CARREL_RECORD_SEALED;
        if (!reader->was_in_progress)
            tell_torn(&verdict);
        compare(&reader->known, reader->n_seals, &verdict);
    }
    *out = verdict;
}

int journal_verify(int fd, const struct journal_known *known, struct journal_verdict *out,
        struct carrel_error *err)
{
    AUTO(journal_reader_finish) struct journal_reader reader = journal_reader_of(fd, known);
    struct journal_line line;
    int r;

    do
        r = journal_reader_next(&reader, &line, err);
    while (r > 0);
    if (r == 0)
        journal_reader_judge(&reader, out);
    return r;
}
