/* journal_export.c - carrel journal export, keygen. */
#include "base/err.h"
#include "base/fd.h"
#include "base/json.h"
#include "cli/command/journal.h"
#include "cli/print/report.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

/* One document: the verdict, and the records that are right. */
static int copy_json(
        int fd, const struct journal_verdict *verdict, FILE *out, struct carrel_error *err)
{
    AUTO(journal_lines_finish) struct journal_lines lines = journal_lines_of(fd);
    AUTO(buf_finish) struct buf text = BUF_INIT(64U << 10);
    struct json json = { .out = &text };
    const char *line;
    size_t len;
    int r;

    json_object(&json, NULL);
    json_str(&json, "format", "carrel journal 1");
    json_str(&json, "run", verdict->chain.run);
    json_object(&json, "verdict");
    journal_write_verdict(&json, verdict);
    json_end_object(&json);
    json_array(&json, "journal");
    (void)fputs(text.data, out);
    lines.limit = verdict->bytes;
    for (uint64_t n = 0; (r = journal_lines_next(&lines, &line, &len)) > 0; n++) {
        (void)fputs(n > 0 ? ",\n" : "\n", out);
        (void)fwrite(line, 1, len, out);
    }
    (void)fputs("\n]}\n", out);
    return r < 0 ? err_set_errno(err, r, "read the journal") : 0;
}

/* The file as it is, up to `limit`. */
static int copy_bytes(int fd, uint64_t limit, FILE *out, struct carrel_error *err)
{
    char chunk[16384];

    for (uint64_t at = 0; at < limit;) {
        size_t want = limit - at < sizeof(chunk) ? (size_t)(limit - at) : sizeof(chunk);
        ssize_t n = pread(fd, chunk, want, (off_t)at);
        if (n < 0 && errno != EINTR)
            return err_set_errno(err, -errno, "read the journal");
        if (n == 0)
            break;
        if (n > 0 && fwrite(chunk, 1, (size_t)n, out) < (size_t)n)
            break; /* the flush reports it */
        at += n > 0 ? (uint64_t)n : 0;
    }
    return 0;
}

static int copy(const struct subcommand_args *args, int fd,
        const struct journal_verdict *verdict, FILE *out, struct carrel_error *err)
{
    uint64_t limit = verdict->state == JOURNAL_BAD ? UINT64_MAX : verdict->bytes;

    int r = args->is_json ? copy_json(fd, verdict, out, err) : copy_bytes(fd, limit, out, err);
    if (r == 0 && (fflush(out) != 0 || ferror(out)))
        r = err_set_errno(err, -errno, "write the export");
    return r;
}

static int export_to_file(const struct subcommand_args *args, int fd,
        const struct journal_verdict *verdict, struct carrel_error *err)
{
    const char *path = journal_args_of(args)->output;
    int target = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (target < 0)
        return err_set_errno(err, -errno, "create '%s'", path);
    FILE *out = fdopen(target, "we");
    if (!out) {
        fd_close(target);
        return err_set_errno(err, -ENOMEM, "create '%s'", path);
    }
    int r = copy(args, fd, verdict, out, err);
    if (r == 0 && fsync(target) < 0)
        r = err_set_errno(err, -errno, "write '%s' to the disk", path);
    if (fclose(out) != 0 && r == 0)
        r = err_set_errno(err, -errno, "write '%s'", path);
    if (r < 0)
        (void)unlink(path); /* half an archive is none */
    return r;
}

static int refuse(const struct subcommand_args *args, const struct journal_verdict *verdict)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(1000);
    struct carrel_error err = { 0 };

    journal_put_verdict(&text, verdict);
    (void)err_set(&err, -EBADMSG, "%s; --force exports it anyway", text.data);
    (void)report_fail(args->is_json, &err);
    return STATUS_BAD;
}

int journal_verb_export(const struct subcommand_args *args)
{
    AUTO(journal_asked_finish) struct journal_asked asked = { .ref.fd = -1 };
    struct journal_verdict verdict;
    struct journal_line line;
    struct carrel_error err = { 0 };
    int r;

    if (journal_ask(args, &asked, &err) < 0)
        return report_fail(args->is_json, &err);
    AUTO(journal_reader_finish)
    struct journal_reader reader = journal_reader_of(asked.ref.fd, &asked.known);
    do
        r = journal_reader_next(&reader, &line, &err);
    while (r > 0);
    if (r < 0 || journal_asked_judge(&asked, &reader, &verdict, &err) < 0)
        return report_fail(args->is_json, &err);
    if (verdict.state == JOURNAL_BAD && !journal_args_of(args)->is_forced)
        return refuse(args, &verdict);
    if (verdict.state == JOURNAL_BAD && !args->is_json && !journal_args_of(args)->output &&
            isatty(STDOUT_FILENO)) {
        (void)err_set(&err, -EINVAL,
                "unverified records are not written to a terminal; use --output FILE");
        return report_fail(args->is_json, &err);
    }
    r = journal_args_of(args)->output ? export_to_file(args, asked.ref.fd, &verdict, &err)
                                      : copy(args, asked.ref.fd, &verdict, stdout, &err);
    if (r < 0)
        return report_error(STATUS_FAILED, &err);
    return verdict.state == JOURNAL_BAD ? STATUS_BAD : 0;
}

int journal_verb_keygen(const struct subcommand_args *args)
{
    struct carrel_error err = { 0 };
    char public_hex[JOURNAL_KEY];
    char id[JOURNAL_KEY_ID];
    char path[PATH_MAX];
    char text[PATH_MAX + 128];

    if (journals_make_key(public_hex, path, &err) < 0)
        return report_fail(args->is_json, &err);
    journal_key_id(public_hex, id);
    (void)snprintf(text, sizeof(text),
            "key %s: '%s' is the secret; the public key is beside it, journal.pub", id, path);
    return report_done(args->is_json, text,
            (const char *[]){ "key_id", id, "public", public_hex, "path", path, NULL });
}
