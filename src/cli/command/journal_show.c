/* journal_show.c - carrel journal list, show. */
#include "base/err.h"
#include "base/json.h"
#include "base/json_read.h"
#include "cli/command/journal.h"
#include "cli/print/report.h"
#include "cli/print/table.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#define JSON_MAX (SIZE_MAX / 4)
#define VALUE_SHOWN 160 /* bytes of one value in the table; --json shows all */

/* ---- list ---- */

enum { COLUMNS = 6 };

static const char *const titles[COLUMNS] = { "RUN", "TASK", "BEGAN (UTC)", "STATE", "REASON",
    "RECORDS" };
static const size_t widths[COLUMNS] = { 3, 4, 19, 11, 6, 7 };

/* The list, as text and as a JSON array. */
struct listing {
    struct table table;
    struct buf text;
    struct json json;
};

static const char *or_dash(const char *text)
{
    return text ? text : "-";
}

static void write_one(const struct carrel_journal_info *info, struct json *json)
{
    json_object(json, NULL);
    json_str(json, "run", info->key);
    json_str(json, "task", info->task);
    json_str(json, "began", info->began);
    json_str(json, "sealed", info->sealed);
    json_str(json, "state", carrel_record_state_name(info->state));
    json_str(json, "reason", info->reason);
    json_u64(json, "records", info->n_records);
    json_str(json, "seal", info->seal);
    json_end_object(json);
}

static int list_one(const struct carrel_journal_info *info, void *context)
{
    struct listing *listing = context;
    char began[32] = "-";
    char records[24] = "-";

    if (info->began) /* "2026-01-31 23:59:59" of a record's time, which is UTC */
        (void)snprintf(began, sizeof(began), "%.10s %.8s", info->began, info->began + 11);
    if (info->seal)
        (void)snprintf(records, sizeof(records), "%" PRIu64, info->n_records);
    const char *const cells[COLUMNS] = { info->key, or_dash(info->task), began,
        carrel_record_state_name(info->state), or_dash(info->reason), records };
    table_add(&listing->table, cells);
    write_one(info, &listing->json);
    return 0;
}

static int print_listing_json(struct listing *listing, int status)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(JSON_MAX);
    struct json json = { .out = &text };

    json_end_array(&listing->json);
    if (listing->text.is_short)
        text.is_short = true;
    json_object(&json, NULL);
    json_bool(&json, "ok", status == 0);
    json_raw(&json, "runs", listing->text.data, listing->text.len);
    json_end_object(&json);
    return report_print_json(&text, status);
}

static int print_listing(struct listing *listing, bool is_json, int status)
{
    if (is_json)
        return print_listing_json(listing, status);
    if (table_has_rows(&listing->table))
        table_print(&listing->table, widths);
    else if (status == 0)
        (void)fputs("no runs yet\n", stderr);
    return report_finish(status);
}

int journal_verb_list(const struct subcommand_args *args)
{
    struct listing listing = { .table = TABLE_INIT(COLUMNS), .text = BUF_INIT(JSON_MAX) };
    struct carrel_error err = { 0 };

    listing.json.out = &listing.text;
    table_add(&listing.table, titles);
    json_array(&listing.json, NULL);
    int r = carrel_journal_each(list_one, &listing, &err);
    int status = r == -EBADMSG ? report_error(STATUS_BAD, &err) : 0;
    status = r < 0 && r != -EBADMSG ? report_fail(args->is_json, &err)
                                    : print_listing(&listing, args->is_json, status);
    table_finish(listing.table);
    buf_finish(listing.text);
    return status;
}

/* ---- show ---- */

/* Members of every record: they have their own columns, or are not shown. */
static bool is_common(struct json_value key)
{
    static const char *const keys[] = { "seq", "time", "run", "event", "head", "signature",
        "prev", "hash" };

    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        if (json_read_equals(key, keys[i]))
            return true;
    return false;
}

/* A value as JSON has it: on one line, and without an effect on a terminal. */
static void print_value(struct json_value value)
{
    size_t n = value.len;

    if (n > VALUE_SHOWN)
        for (n = VALUE_SHOWN; n > 0 && ((unsigned char)value.text[n] & 0xc0) == 0x80;)
            n--;
    printf("%.*s%s", (int)n, value.text, n < value.len ? "…" : "");
}

static void print_record(const struct carrel_journal_record *record)
{
    struct json_value whole = { 0 };
    struct json_value key;
    struct json_value value;

    printf("%6" PRIu64 "  %.15s  %-20s", record->seq, record->time + 11, record->event);
    (void)json_read_check(record->json, record->json_len, &whole, NULL); /* it is valid */
    for (size_t at = 0; json_read_next(whole, &at, &key, &value);) {
        if (is_common(key))
            continue;
        printf("  %.*s=", (int)key.len - 2, key.text + 1);
        print_value(value);
    }
    (void)putchar('\n');
}

struct show {
    const struct subcommand_args *args;
    bool is_first;
};

static void show_record(struct show *show, const struct carrel_journal_record *record)
{
    if (!show->args->is_json) {
        print_record(record);
        return;
    }
    if (!journal_args_of(show->args)->is_followed)
        (void)fputs(show->is_first ? "\n" : ",\n", stdout);
    show->is_first = false;
    (void)fwrite(record->json, 1, record->json_len, stdout); /* report_finish() looks */
    if (journal_args_of(show->args)->is_followed)
        (void)putchar('\n');
}

/* All records. With --follow until the run is over. */
static int show_records(
        struct show *show, struct carrel_journal_reader *reader, struct carrel_error *err)
{
    const struct carrel_journal_record *record;
    int r;

    do {
        while ((r = carrel_journal_next(reader, &record, err)) > 0)
            show_record(show, record);
        if (r < 0 || !journal_args_of(show->args)->is_followed)
            return r;
        if (fflush(stdout) != 0)
            return err_set_errno(err, -errno, "write the report");
        r = carrel_journal_wait(reader, err);
    } while (r > 0);
    return r;
}

static int show_end(
        const struct subcommand_args *args, const struct carrel_journal_verdict *verdict)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(64U << 10);
    struct json json = { .out = &text, .needs_comma = true };
    int status = verdict->state == CARREL_RECORD_BAD ? STATUS_BAD : 0;

    if (!args->is_json) {
        journal_put_verdict(&text, verdict);
        (void)puts(text.data);
    } else if (!journal_args_of(args)->is_followed) {
        (void)fputs("\n]", stdout);
        journal_write_verdict(&json, verdict);
        json_bool(&json, "ok", status == 0);
        json_end_object(&json);
        (void)puts(text.data);
    }
    return report_finish(status);
}

int journal_verb_show(const struct subcommand_args *args)
{
    AUTO(carrel_journal_free) struct carrel_journal_reader *reader = NULL;
    const struct carrel_journal_verdict *verdict;
    struct show show = { .args = args, .is_first = true };
    struct carrel_error err = { 0 };

    if (journal_ask(args, &reader, &err) < 0)
        return report_fail(args->is_json, &err);
    const char *key = carrel_journal_key(reader);
    if (args->is_json && !journal_args_of(args)->is_followed)
        printf("{\"run\":\"%s\",\"journal\":[", key ? key : "");
    if (show_records(&show, reader, &err) < 0 ||
            carrel_journal_judge(reader, &verdict, &err) < 0)
        return report_fail(args->is_json, &err);
    return show_end(args, verdict);
}
