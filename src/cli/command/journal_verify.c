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
static const char *remark(const struct journal_verdict *verdict)
{
    if (verdict->state != JOURNAL_UNSEALED)
        return "";
    return verdict->records > 0
                   ? "its end was not recorded: carrel was killed, or could not write"
                   : "nothing was recorded: carrel was killed, or could not write";
}

void journal_put_verdict(struct buf *out, const struct journal_verdict *verdict)
{
    const char *why = verdict->why[0] ? verdict->why : remark(verdict);
    char id[JOURNAL_KEY_ID];

    if (verdict->state == JOURNAL_BAD && verdict->bad_record > 0)
        buf_addf(out, "BAD at record %" PRIu64 ": ", verdict->bad_record);
    else if (verdict->state == JOURNAL_BAD || verdict->state == JOURNAL_MISSING)
        buf_add_str(out, "BAD: ");
    else
        buf_addf(out, "%s, %" PRIu64 " record%s", journal_state_name(verdict->state),
                verdict->records, plural(verdict->records));
    if (verdict->state == JOURNAL_SEALED && verdict->chain.signer[0]) {
        journal_key_id(verdict->chain.signer, id);
        buf_addf(out, ", signed by %s", id);
    }
    if (verdict->state == JOURNAL_UNSEALED && why[0])
        buf_add_str(out, ": ");
    buf_add_str(out, why);
    if (verdict->n_recovered > 0)
        buf_addf(out, " (%" PRIu64 " record%s of something lost in a crash)",
                verdict->n_recovered, plural(verdict->n_recovered));
}

void journal_write_verdict(struct json *json, const struct journal_verdict *verdict)
{
    const struct journal_chain *chain = &verdict->chain;
    char id[JOURNAL_KEY_ID] = "";

    if (chain->signer[0])
        journal_key_id(chain->signer, id);
    json_str(json, "state", journal_state_name(verdict->state));
    json_u64(json, "records", verdict->records);
    if (verdict->bad_record > 0)
        json_u64(json, "bad_record", verdict->bad_record);
    else
        json_null(json, "bad_record");
    json_str(json, "why", verdict->why[0] ? verdict->why : NULL);
    json_str(json, "head", chain->seq > 0 ? chain->head : NULL);
    json_str(json, "seal", chain->seal[0] ? chain->seal : NULL);
    json_str(json, "signer", chain->signer[0] ? chain->signer : NULL);
    json_str(json, "key_id", id[0] ? id : NULL);
    json_u64(json, "torn_bytes", verdict->torn_bytes);
    json_u64(json, "recovered", verdict->n_recovered);
}

int journal_verdict_status(const struct journal_verdict *verdict)
{
    switch (verdict->state) {
    case JOURNAL_BAD:
    case JOURNAL_MISSING:
        return STATUS_BAD;
    case JOURNAL_UNSEALED:
    case JOURNAL_IN_PROGRESS:
        return STATUS_UNSEALED;
    case JOURNAL_SEALED:
    case JOURNAL_PRUNED:
        break;
    }
    return 0;
}

/* What a verify has come to so far. */
struct tally {
    const struct subcommand_args *args;
    const struct journals *journals;
    const struct journal_trust *trust; /* NULL: any key */
    struct buf text;
    struct json json;
    uint64_t by_state[JOURNAL_PRUNED + 1];
    int status;
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

static int tell(struct tally *tally, const char *name, const struct journal_verdict *verdict,
        struct carrel_error *err)
{
    tally->by_state[verdict->state]++;
    worsen(tally, journal_verdict_status(verdict));
    if (tally->args->is_json) {
        json_object(&tally->json, NULL);
        json_str(&tally->json, "name", name);
        journal_write_verdict(&tally->json, verdict);
        json_end_object(&tally->json);
        return 0;
    }
    buf_addf(&tally->text, "%-18s  ", name);
    journal_put_verdict(&tally->text, verdict);
    buf_add_str(&tally->text, "\n");
    return flush(tally, err);
}

static void write_index(struct json *json, const struct journal_verdict *verdict, bool is_bad)
{
    json_str(json, "state", is_bad ? "bad" : "right");
    json_u64(json, "records", verdict->records);
    if (is_bad)
        json_u64(json, "bad_record", verdict->records + 1);
    else
        json_null(json, "bad_record");
    json_str(json, "why", is_bad ? verdict->why : NULL);
    json_str(json, "head", verdict->chain.seq > 0 ? verdict->chain.head : NULL);
    json_u64(json, "recovered", verdict->n_recovered);
}

/* An index has no seal, so the text differs. A torn end is a fault: it has no writer now. */
static void tell_index(struct tally *tally, const struct journal_verdict *verdict)
{
    bool is_bad = verdict->state == JOURNAL_BAD || verdict->torn_bytes > 0;

    if (is_bad)
        worsen(tally, STATUS_BAD);
    if (tally->args->is_json) {
        write_index(&tally->json, verdict, is_bad);
        return;
    }
    buf_addf(&tally->text, "%-18s  ", "index");
    if (is_bad)
        buf_addf(&tally->text, "BAD at record %" PRIu64 ": %s", verdict->records + 1,
                verdict->why);
    else
        buf_addf(&tally->text, "right, %" PRIu64 " record%s", verdict->records,
                plural(verdict->records));
    if (!is_bad && verdict->n_recovered > 0)
        buf_addf(&tally->text, " (%" PRIu64 " of something lost in a crash)",
                verdict->n_recovered);
    buf_add_str(&tally->text, "\n");
}

static int verify_run(struct tally *tally, const char *run, struct carrel_error *err)
{
    AUTO(journal_ref_finish) struct journal_ref ref = { .fd = -1 };
    struct journal_verdict verdict = { 0 };

    int r = journals_open_run(tally->journals, run, &ref, err);
    if (r == 0)
        r = journals_verify(&ref, tally->trust, &verdict, err);
    return r < 0 ? r : tell(tally, run, &verdict, err);
}

static int verify_all(struct tally *tally, struct carrel_error *err)
{
    const struct journal_runs *runs = tally->journals->runs;
    AUTO(free) char(*strays)[JOURNAL_RUN] = NULL;
    size_t n_strays = 0;

    if (tally->args->is_json)
        json_object(&tally->json, "index");
    tell_index(tally, &runs->index);
    if (tally->args->is_json) {
        json_end_object(&tally->json);
        json_array(&tally->json, "journals");
    }
    for (size_t i = 0; i < runs->n; i++) {
        if (runs->items[i].is_pruned) {
            tally->by_state[JOURNAL_PRUNED]++;
            continue;
        }
        int r = verify_run(tally, runs->items[i].run, err);
        if (r < 0)
            return r;
    }
    int r = journals_strays(tally->journals, &strays, &n_strays, err);
    for (size_t i = 0; r == 0 && i < n_strays; i++)
        r = verify_run(tally, strays[i], err);
    return r;
}

static int verify_word(struct tally *tally, const char *word, struct carrel_error *err)
{
    AUTO(journal_ref_finish) struct journal_ref ref = { .fd = -1 };
    struct journal_verdict verdict = { 0 };
    char shown[1024];

    int r = journals_find(tally->journals, word, &ref, err);
    if (r < 0)
        return r;
    r = journals_verify(&ref, tally->trust, &verdict, err);
    if (r < 0)
        return err_wrap(err, r, "verify '%s'", word);
    (void)str_escape(word, strlen(word), shown, sizeof(shown));
    if (!ref.is_index)
        return tell(tally, ref.run[0] ? ref.run : shown, &verdict, err);
    if (tally->args->is_json)
        json_object(&tally->json, NULL);
    tell_index(tally, &verdict);
    if (tally->args->is_json)
        json_end_object(&tally->json);
    return 0;
}

static int verify_words(struct tally *tally, struct carrel_error *err)
{
    int r = 0;

    if (tally->args->is_json) {
        json_null(&tally->json, "index");
        json_array(&tally->json, "journals");
    }
    for (size_t i = 0; r == 0 && i < tally->args->n_words; i++)
        r = verify_word(tally, tally->args->words[i], err);
    return r;
}

static void sum_up(struct tally *tally)
{
    static const struct {
        enum journal_state state;
        const char *name;
    } parts[] = {
        { JOURNAL_SEALED, "sealed" },
        { JOURNAL_IN_PROGRESS, "in_progress" },
        { JOURNAL_UNSEALED, "unsealed" },
        { JOURNAL_BAD, "bad" },
        { JOURNAL_MISSING, "missing" },
        { JOURNAL_PRUNED, "pruned" },
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
                    tally->by_state[parts[i].state], journal_state_name(parts[i].state));
    buf_add_str(&tally->text, "\n");
}

int journal_verb_verify(const struct subcommand_args *args)
{
    AUTO(journals_close) struct journals *journals = NULL;
    struct tally tally = { .args = args, .text = BUF_INIT(JSON_MAX) };
    struct carrel_error err = { 0 };
    struct journal_trust trust;
    int status;

    int r = journals_trust(journal_args_of(args)->key, &trust, &err);
    tally.trust = r > 0 ? &trust : NULL;
    if (r >= 0)
        r = journals_open(&journals, &err);
    tally.journals = journals;
    tally.json.out = &tally.text;
    if (args->is_json)
        json_object(&tally.json, NULL);
    if (r >= 0)
        r = args->n_words > 0 ? verify_words(&tally, &err) : verify_all(&tally, &err);
    if (r >= 0)
        sum_up(&tally);
    if (r >= 0)
        r = flush(&tally, &err);
    if (r < 0)
        status = report_fail(args->is_json, &err);
    else if (args->is_json)
        status = report_print_json(&tally.text, tally.status);
    else
        status = report_finish(tally.status);
    buf_finish(tally.text);
    return status;
}
