/* journal_verify.c - carrel journal verify, and a verdict in words. */
#include "base/err.h"
#include "base/json.h"
#include "base/str.h"
#include "cli/command/journal.h"
#include "cli/print/report.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#define JSON_MAX (SIZE_MAX / 4)

static const char *plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

/* What there is to say when nothing is wrong but that the end is missing. */
static const char *remark(const struct carrel_journal_verdict *verdict)
{
    if (verdict->state != CARREL_RECORD_UNSEALED)
        return "";
    return verdict->n_records > 0
                   ? "its end was not recorded: carrel was killed, or could not write"
                   : "nothing was recorded: carrel was killed, or could not write";
}

void journal_put_verdict(struct buf *out, const struct carrel_journal_verdict *verdict)
{
    const char *why = verdict->why ? verdict->why : remark(verdict);

    if (verdict->state == CARREL_RECORD_BAD && verdict->bad_record > 0)
        buf_addf(out, "BAD at record %" PRIu64 ": ", verdict->bad_record);
    else if (verdict->state == CARREL_RECORD_BAD || verdict->state == CARREL_RECORD_MISSING)
        buf_add_str(out, "BAD: ");
    else
        buf_addf(out, "%s, %" PRIu64 " record%s", carrel_record_state_name(verdict->state),
                verdict->n_records, plural(verdict->n_records));
    if (verdict->state == CARREL_RECORD_SEALED && verdict->key_id)
        buf_addf(out, ", signed by %s", verdict->key_id);
    if (verdict->state == CARREL_RECORD_UNSEALED && why[0])
        buf_add_str(out, ": ");
    buf_add_str(out, why);
    if (verdict->n_recovered > 0)
        buf_addf(out, " (%" PRIu64 " record%s of something lost in a crash)",
                verdict->n_recovered, plural(verdict->n_recovered));
}

void journal_write_verdict(struct json *json, const struct carrel_journal_verdict *verdict)
{
    json_str(json, "state", carrel_record_state_name(verdict->state));
    json_u64(json, "records", verdict->n_records);
    if (verdict->bad_record > 0)
        json_u64(json, "bad_record", verdict->bad_record);
    else
        json_null(json, "bad_record");
    json_str(json, "why", verdict->why);
    json_str(json, "head", verdict->head);
    json_str(json, "seal", verdict->seal);
    json_str(json, "signer", verdict->signer);
    json_str(json, "key_id", verdict->key_id);
    json_u64(json, "torn_bytes", verdict->torn_bytes);
    json_u64(json, "recovered", verdict->n_recovered);
}

int journal_verdict_status(const struct carrel_journal_verdict *verdict)
{
    switch (verdict->state) {
    case CARREL_RECORD_BAD:
    case CARREL_RECORD_MISSING:
        return STATUS_BAD;
    case CARREL_RECORD_UNSEALED:
    case CARREL_RECORD_IN_PROGRESS:
        return STATUS_UNSEALED;
    case CARREL_RECORD_SEALED:
    case CARREL_RECORD_PRUNED:
    case CARREL_RECORD_NONE:
        break;
    }
    return 0;
}

/* What a verify has come to so far. */
struct tally {
    const struct subcommand_args *args;
    const char *word; /* that is verified; NULL: all runs */
    struct buf text;
    struct json json;
    uint64_t by_state[CARREL_RECORD_NONE + 1];
    int status;
    struct carrel_error err;
};

/* 1 is worse than 3 is worse than 0. */
static void worsen(struct tally *tally, int status)
{
    if (status == STATUS_BAD || tally->status == 0)
        tally->status = status;
}

static int flush(struct tally *tally, struct carrel_error *err)
{
    if (tally->args->is_json)
        return 0;
    if (tally->text.is_short)
        return err_set_errno(err, -ENOMEM, "verify");
    if (tally->text.len > 0)
        (void)fwrite(tally->text.data, 1, tally->text.len, stdout); /* report_finish() looks */
    buf_clear(&tally->text);
    return 0;
}

static void tell(struct tally *tally, const struct carrel_journal_verdict *verdict)
{
    const char *name = verdict->is_file && tally->word ? tally->word : verdict->key;
    char shown[1024] = "";

    if (name)
        (void)str_escape(name, strlen(name), shown, sizeof(shown));
    if (tally->args->is_json) {
        json_object(&tally->json, NULL);
        json_str(&tally->json, "name", shown);
        journal_write_verdict(&tally->json, verdict);
        json_end_object(&tally->json);
        return;
    }
    buf_addf(&tally->text, "%-18s  ", shown);
    journal_put_verdict(&tally->text, verdict);
    buf_add_str(&tally->text, "\n");
}

static void write_index(
        struct json *json, const struct carrel_journal_verdict *verdict, bool is_bad)
{
    json_str(json, "state", is_bad ? "bad" : "right");
    json_u64(json, "records", verdict->n_records);
    if (is_bad)
        json_u64(json, "bad_record", verdict->n_records + 1);
    else
        json_null(json, "bad_record");
    json_str(json, "why", is_bad ? verdict->why : NULL);
    json_str(json, "head", verdict->head);
    json_u64(json, "recovered", verdict->n_recovered);
}

/* An index has no seal, so the text differs. A torn end is a fault: it has no writer now. */
static void tell_index(struct tally *tally, const struct carrel_journal_verdict *verdict)
{
    bool is_bad = verdict->state == CARREL_RECORD_BAD || verdict->torn_bytes > 0;

    if (is_bad)
        worsen(tally, STATUS_BAD);
    if (tally->args->is_json) {
        write_index(&tally->json, verdict, is_bad);
        return;
    }
    buf_addf(&tally->text, "%-18s  ", "index");
    if (is_bad)
        buf_addf(&tally->text, "BAD at record %" PRIu64 ": %s", verdict->n_records + 1,
                verdict->why);
    else
        buf_addf(&tally->text, "right, %" PRIu64 " record%s", verdict->n_records,
                plural(verdict->n_records));
    if (!is_bad && verdict->n_recovered > 0)
        buf_addf(&tally->text, " (%" PRIu64 " of something lost in a crash)",
                verdict->n_recovered);
    buf_add_str(&tally->text, "\n");
}

static int on_verdict(const struct carrel_journal_verdict *verdict, void *context)
{
    struct tally *tally = context;

    if (verdict->is_index) {
        if (tally->args->is_json)
            json_object(&tally->json, tally->word ? NULL : "index");
        tell_index(tally, verdict);
        if (tally->args->is_json)
            json_end_object(&tally->json);
        if (tally->args->is_json && !tally->word)
            json_array(&tally->json, "journals");
        return flush(tally, &tally->err);
    }
    tally->by_state[verdict->state]++;
    worsen(tally, journal_verdict_status(verdict));
    if (tally->word || verdict->state != CARREL_RECORD_PRUNED)
        tell(tally, verdict);
    return flush(tally, &tally->err);
}

static int verify(struct tally *tally, const char *word)
{
    tally->word = word;
    return carrel_journal_verify(
            word, journal_args_of(tally->args)->key, on_verdict, tally, &tally->err);
}

static int verify_words(struct tally *tally)
{
    int r = 0;

    if (tally->args->is_json) {
        json_null(&tally->json, "index");
        json_array(&tally->json, "journals");
    }
    for (size_t i = 0; r == 0 && i < tally->args->n_words; i++)
        r = verify(tally, tally->args->words[i]);
    return r;
}

static void sum_up(struct tally *tally)
{
    static const struct {
        enum carrel_record_state state;
        const char *name;
    } parts[] = {
        { CARREL_RECORD_SEALED, "sealed" },
        { CARREL_RECORD_IN_PROGRESS, "in_progress" },
        { CARREL_RECORD_UNSEALED, "unsealed" },
        { CARREL_RECORD_BAD, "bad" },
        { CARREL_RECORD_MISSING, "missing" },
        { CARREL_RECORD_PRUNED, "pruned" },
    };

    if (tally->args->is_json) {
        json_end_array(&tally->json);
        for (size_t i = 0; i < ARRAY_LEN(parts); i++)
            json_u64(&tally->json, parts[i].name, tally->by_state[parts[i].state]);
        json_bool(&tally->json, "ok", tally->status == 0);
        json_end_object(&tally->json);
        return;
    }
    if (tally->args->n_words > 0)
        return;
    buf_add_str(&tally->text, "runs:");
    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        if (tally->by_state[parts[i].state] > 0 || i == 0)
            buf_addf(&tally->text, "%s %" PRIu64 " %s", i > 0 ? "," : "",
                    tally->by_state[parts[i].state], carrel_record_state_name(parts[i].state));
    buf_add_str(&tally->text, "\n");
}

int journal_verb_verify(const struct subcommand_args *args)
{
    struct tally tally = { .args = args, .text = BUF_INIT(JSON_MAX) };
    int status;

    tally.json.out = &tally.text;
    if (args->is_json)
        json_object(&tally.json, NULL);
    int r = args->n_words > 0 ? verify_words(&tally) : verify(&tally, NULL);
    if (r == 0)
        sum_up(&tally);
    if (r == 0)
        r = flush(&tally, &tally.err);
    if (r < 0)
        status = report_fail(args->is_json, &tally.err);
    else if (args->is_json)
        status = report_print_json(&tally.text, tally.status);
    else
        status = report_finish(tally.status);
    buf_finish(tally.text);
    return status;
}
