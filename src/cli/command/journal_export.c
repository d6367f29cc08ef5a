/* journal_export.c - carrel journal export, keygen. */
#include "base/err.h"
#include "base/fd.h"
#include "base/json.h"
#include "cli/command/journal.h"
#include "cli/print/report.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

DEFINE_AUTO(struct carrel_journal_keys *, carrel_journal_keys_free)

#define CHUNK (64U << 10) /* that is written at once */
#define TEXT_MAX (16U << 20)

static int write_out(struct buf *text, size_t least, int fd, struct carrel_error *err)
{
    if (!text->is_short && text->len < least)
        return 0;
    int r = text->is_short ? -ENOMEM : fd_write_all(fd, text->data, text->len);
    buf_clear(text);
    return r < 0 ? err_set_errno(err, r, "write the export") : 0;
}

/* The records that are right, from the first. */
static int write_records(const struct subcommand_args *args, uint64_t n, struct buf *text,
        int fd, struct carrel_error *err)
{
    AUTO(carrel_journal_free) struct carrel_journal_reader *reader = NULL;
    const struct carrel_journal_record *record;

    int r = journal_ask(args, &reader, err);
    for (uint64_t i = 0; r >= 0 && i < n; i++) {
        r = carrel_journal_next(reader, &record, err);
        if (r <= 0)
            break;
        buf_add_str(text, i > 0 ? ",\n" : "\n");
        buf_add(text, record->json, record->json_len);
        r = write_out(text, CHUNK, fd, err);
    }
    return r < 0 ? r : 0;
}

/* One document: the verdict, and the records that are right. */
static int write_document(const struct subcommand_args *args,
        const struct carrel_journal_verdict *verdict, int fd, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(TEXT_MAX);
    struct json json = { .out = &text };

    json_object(&json, NULL);
    json_str(&json, "format", "carrel journal 1");
    json_str(&json, "run", verdict->key ? verdict->key : "");
    json_object(&json, "verdict");
    journal_write_verdict(&json, verdict);
    json_end_object(&json);
    json_array(&json, "journal");
    int r = write_records(args, verdict->n_records, &text, fd, err);
    buf_add_str(&text, "\n]}\n");
    return r < 0 ? r : write_out(&text, 0, fd, err);
}

static int write_to(const struct subcommand_args *args, struct carrel_journal_reader *reader,
        const struct carrel_journal_verdict *verdict, int fd, struct carrel_error *err)
{
    if (args->is_json)
        return write_document(args, verdict, fd, err);
    return carrel_journal_export(reader,
            journal_args_of(args)->is_forced ? CARREL_EXPORT_FORCE : CARREL_EXPORT_VALID, fd,
            err);
}

static int write_to_file(const struct subcommand_args *args,
        struct carrel_journal_reader *reader, const struct carrel_journal_verdict *verdict,
        struct carrel_error *err)
{
    const char *path = journal_args_of(args)->output;
    int target = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (target < 0)
        return err_set_errno(err, -errno, "create '%s'", path);
    int r = write_to(args, reader, verdict, target, err);
    if (r == 0 && fsync(target) < 0)
        r = err_set_errno(err, -errno, "write '%s' to the disk", path);
    if (close(target) < 0 && r == 0)
        r = err_set_errno(err, -errno, "write '%s'", path);
    if (r < 0)
        (void)unlink(path); /* half an archive is none */
    return r;
}

static int refuse(
        const struct subcommand_args *args, const struct carrel_journal_verdict *verdict)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(1000);
    struct carrel_error err = { 0 };

    journal_put_verdict(&text, verdict);
    (void)err_set(&err, -EBADMSG, "%s; --force exports it anyway", text.data);
    (void)report_fail(args->is_json, &err);
    return STATUS_BAD;
}

/* Reads it to its end. */
static int judge(struct carrel_journal_reader *reader,
        const struct carrel_journal_verdict **out, struct carrel_error *err)
{
    const struct carrel_journal_record *record;
    int r;

    do
        r = carrel_journal_next(reader, &record, err);
    while (r > 0);
    return r < 0 ? r : carrel_journal_judge(reader, out, err);
}

int journal_verb_export(const struct subcommand_args *args)
{
    AUTO(carrel_journal_free) struct carrel_journal_reader *reader = NULL;
    const struct journal_args *own = journal_args_of(args);
    const struct carrel_journal_verdict *verdict;
    struct carrel_error err = { 0 };

    if (journal_ask(args, &reader, &err) < 0 || judge(reader, &verdict, &err) < 0)
        return report_fail(args->is_json, &err);
    const bool is_bad = verdict->state == CARREL_RECORD_BAD;
    if (is_bad && !own->is_forced)
        return refuse(args, verdict);
    if (is_bad && !args->is_json && !own->output && isatty(STDOUT_FILENO)) {
        (void)err_set(&err, -EINVAL,
                "unverified records are not written to a terminal; use --output FILE");
        return report_fail(args->is_json, &err);
    }
    int r = own->output ? write_to_file(args, reader, verdict, &err)
                        : write_to(args, reader, verdict, STDOUT_FILENO, &err);
    if (r < 0)
        return report_error(STATUS_FAILED, &err);
    return is_bad ? STATUS_BAD : 0;
}

int journal_verb_keygen(const struct subcommand_args *args)
{
    AUTO(carrel_journal_keys_free) struct carrel_journal_keys *keys = NULL;
    struct carrel_error err = { 0 };
    char text[PATH_MAX + 128];

    if (carrel_journal_keygen(&keys, &err) < 0)
        return report_fail(args->is_json, &err);
    (void)snprintf(text, sizeof(text),
            "key %s: '%s' is the secret; the public key is beside it, journal.pub", keys->id,
            keys->path);
    return report_done(args->is_json, text,
            (const char *[]){
                    "key_id", keys->id, "public", keys->public_hex, "path", keys->path, NULL });
}
