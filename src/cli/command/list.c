/* list.c - carrel list: the living sandboxes, and the requests that wait for a slot. */
#include "registry/list.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/str.h"
#include "base/utf8.h"
#include "cli/args/report_args.h"
#include "cli/commands.h"
#include "cli/print/report.h"
#include "cli/print/span.h"
#include "core/keeper/sweep.h"
#include <errno.h>
#include <stdio.h>

#define LABELS_MAX 32
#define CELL_MAX 256

struct list_args {
    struct report_args report;
    const char *labels[LABELS_MAX];
    size_t n_labels;
    bool has_dead;
};

static const char help[] =
        "Usage: carrel list [options]\n\n"
        "Lists the sandboxes of this user, oldest first, and below them those that wait\n"
        "until the policy allows one more. Entries of sandboxes that were killed are\n"
        "removed.";

static int take_label(void *t, const char *v, struct carrel_error *err)
{
    struct list_args *args = t;
    char shown[64];

    if (v[0] == '\0' || v[0] == '=')
        return err_set(err, -EINVAL, "'%s' has no key; expected KEY=VALUE or KEY",
                str_escape(v, strlen(v), shown, sizeof(shown)));
    if (args->n_labels == LABELS_MAX)
        return err_set(err, -E2BIG, "more than %d labels", LABELS_MAX);
    args->labels[args->n_labels++] = v;
    return 0;
}

static const struct option_row rows[] = {
    OPTION_FLAG("all", "also show entries of killed sandboxes, and keep them", struct list_args,
            has_dead),
    { "label", "KEY[=VALUE]", "only sandboxes with this label; repeatable, all must match",
            .take = take_label },
    OPTION_FLAG(
            "json", "print one JSON object and nothing else", struct list_args, report.is_json),
    OPTION_FLAG("help", "print this text", struct list_args, report.wants_help),
};

enum {
    COL_ID,
    COL_NAME,
    COL_STATE,
    COL_AGE,
    COL_LEASE,
    COL_PROCS,
    COL_ROOT,
    COL_LABELS,
    COLUMNS
};

typedef char cells[COLUMNS][CELL_MAX];

static void put(char cell[static CELL_MAX], const char *text)
{
    (void)str_escape(text[0] ? text : "-", text[0] ? strlen(text) : 1, cell, CELL_MAX);
}

static void put_labels(const struct registry_item *item, char cell[static CELL_MAX])
{
    AUTO(buf_finish) struct buf text = BUF_INIT(1U << 20);

    for (size_t i = 0; i < item->n_labels; i++)
        buf_addf(
                &text, "%s%s=%s", i > 0 ? "," : "", item->labels[i].key, item->labels[i].value);
    put(cell, text.data ? text.data : "");
}

/* What a lease and a time of idleness leave: whichever is shorter. */
static void put_left(const struct registry_item *item, char cell[static CELL_MAX])
{
    const uint64_t ms =
            item->lease_left_ms < item->idle_left_ms ? item->lease_left_ms : item->idle_left_ms;
    char span[SPAN_MAX];

    put(cell, ms == REGISTRY_NO_END ? "" : span_text(ms / 1000, span));
}

static const char *root_of(const struct registry_item *item)
{
    if (item->image[0])
        return item->image;
    return item->root[0] ? item->root : "host";
}

static void fill(const struct registry_item *item, cells row)
{
    char span[SPAN_MAX];

    put(row[COL_ID], item->id);
    put(row[COL_NAME], item->name);
    put(row[COL_STATE], item->state);
    put(row[COL_AGE], span_text(item->age_ms / 1000, span));
    put_left(item, row[COL_LEASE]);
    (void)snprintf(row[COL_PROCS], CELL_MAX, "%u", item->status.n_processes);
    put(row[COL_ROOT], root_of(item));
    put_labels(item, row[COL_LABELS]);
}

/* In characters: an escaped text has valid UTF-8 only. */
static int width_of(const char *text)
{
    int n = 0;

    for (size_t len = strlen(text); len > 0; n++) {
        size_t step = utf8_valid((const unsigned char *)text, len);
        text += step ? step : 1;
        len -= step ? step : 1;
    }
    return n;
}

static void print_row(const cells row, const int widths[COLUMNS])
{
    for (int i = 0; i < COLUMNS - 1; i++)
        printf("%s%*s  ", row[i], widths[i] - width_of(row[i]), "");
    printf("%s\n", row[COLUMNS - 1]);
}

static int print_sandboxes(const struct registry_list *list, struct carrel_error *err)
{
    static const cells head = { "ID", "NAME", "STATE", "AGE", "LEASE", "PROCS", "ROOT",
        "LABELS" };
    int widths[COLUMNS];
    AUTO(free) cells *table = calloc(list->n + 1, sizeof(*table));

    if (!table)
        return err_set_errno(err, -ENOMEM, "list the sandboxes");
    for (int i = 0; i < COLUMNS; i++)
        widths[i] = width_of(head[i]);
    for (size_t n = 0; n < list->n; n++) {
        fill(&list->items[n], table[n]);
        for (int i = 0; i < COLUMNS; i++) {
            int width = width_of(table[n][i]);
            widths[i] = width > widths[i] ? width : widths[i];
        }
    }
    print_row(head, widths);
    for (size_t n = 0; n < list->n; n++)
        print_row((const char(*)[CELL_MAX])table[n], widths);
    return 0;
}

static void print_queue(const struct registry_list *list)
{
    char id[CELL_MAX];
    char name[CELL_MAX];
    char span[SPAN_MAX];

    printf("%s%-5s  %-18s  %-7s  %-7s  %s\n", list->n > 0 ? "\n" : "", "QUEUE", "ID", "WAITING",
            "PID", "NAME");
    for (size_t i = 0; i < list->n_waiting; i++) {
        const struct registry_item *item = &list->waiting[i];
        put(id, item->id);
        put(name, item->name);
        printf("%-5zu  %-18s  %-7s  %-7d  %s\n", i + 1, id,
                span_text(item->age_ms / 1000, span), (int)item->status.pid, name);
    }
}

static int print_text(const struct registry_list *list, struct carrel_error *err)
{
    int r = list->n > 0 ? print_sandboxes(list, err) : 0;

    if (r == 0 && list->n_waiting > 0)
        print_queue(list);
    return r;
}

static int list_all(const struct list_args *args)
{
    const struct registry_query query = {
        .labels = args->labels, .n_labels = args->n_labels, .has_dead = args->has_dead
    };
    struct carrel_error err = { 0 };
    AUTO(registry_close) struct registry reg = REGISTRY_NONE;
    AUTO(registry_list_finish) struct registry_list list = { 0 };
    AUTO(buf_finish) struct buf text = BUF_INIT(SIZE_MAX / 4);
    struct json json = { .out = &text };

    int r = registry_open(&reg, &err);
    if (r == 0)
        r = registry_list_read(&reg, &query, &list, &err);
    if (r == 0 && !args->has_dead)
        keeper_sweep_layers(&reg);
    if (r == 0 && args->report.is_json) {
        registry_list_write_json(&list, &json);
        return report_print_json(&text, 0);
    }
    if (r == 0)
        r = print_text(&list, &err);
    return r < 0 ? report_fail(args->report.is_json, &err) : report_finish(0);
}

int cmd_list(int argc, char **argv)
{
    struct carrel_error err = { 0 };
    struct list_args args = { 0 };
    char shown[64];

    int at = options_parse(rows, ARRAY_LEN(rows), argc, argv, &args, &err);
    if (at >= 0 && args.report.wants_help) {
        (void)puts(help);
        (void)puts("\nOptions:");
        options_print(rows, ARRAY_LEN(rows));
        return 0;
    }
    if (at >= 0 && at < argc)
        at = err_set(&err, -EINVAL, "list takes no arguments, only options: '%s'",
                str_escape(argv[at], strlen(argv[at]), shown, sizeof(shown)));
    return at < 0 ? report_error(STATUS_FAILED, &err) : list_all(&args);
}
