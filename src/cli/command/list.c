/* list.c - carrel list: the living sandboxes, and the requests that wait for a slot. */
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/str.h"
#include "cli/args/report_args.h"
#include "cli/commands.h"
#include "cli/print/report.h"
#include "cli/print/span.h"
#include "cli/print/table.h"
#include <carrel/sandbox.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>

#define LABELS_MAX 32
#define CELL_MAX 256

struct list_args {
    struct report_args report;
    const char *labels[LABELS_MAX + 1]; /* NULL-terminated */
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

static void put_labels(const struct carrel_sandbox_info *info, char cell[static CELL_MAX])
{
    AUTO(buf_finish) struct buf text = BUF_INIT(1U << 20);

    for (size_t i = 0; info->labels[i]; i++)
        buf_addf(&text, "%s%s", i > 0 ? "," : "", info->labels[i]);
    put(cell, text.data ? text.data : "");
}

/* What a lease and a time of idleness leave: whichever is shorter. */
static void put_left(const struct carrel_sandbox_info *info, char cell[static CELL_MAX])
{
    const uint64_t ms =
            info->lease_left_ms < info->idle_left_ms ? info->lease_left_ms : info->idle_left_ms;
    char span[SPAN_MAX];

    put(cell, ms == CARREL_NEVER ? "" : span_text(ms / 1000, span));
}

static const char *root_of(const struct carrel_sandbox_info *info)
{
    if (info->image[0])
        return info->image;
    return info->root[0] ? info->root : "host";
}

static void fill(const struct carrel_sandbox_info *info, cells row)
{
    char span[SPAN_MAX];

    put(row[COL_ID], info->id);
    put(row[COL_NAME], info->name);
    put(row[COL_STATE], info->state);
    put(row[COL_AGE], span_text(info->age_ms / 1000, span));
    put_left(info, row[COL_LEASE]);
    (void)snprintf(row[COL_PROCS], CELL_MAX, "%u", info->n_processes);
    put(row[COL_ROOT], root_of(info));
    put_labels(info, row[COL_LABELS]);
}

struct lists {
    struct table living;
    struct table waiting;
    size_t n_waiting;
};

static void add_living(struct lists *lists, const struct carrel_sandbox_info *info)
{
    cells row;
    const char *list[COLUMNS];

    fill(info, row);
    for (int i = 0; i < COLUMNS; i++)
        list[i] = row[i];
    table_add(&lists->living, list);
}

static void add_waiting(struct lists *lists, const struct carrel_sandbox_info *info)
{
    char number[16];
    char id[CELL_MAX];
    char span[SPAN_MAX];
    char pid[16];
    char name[CELL_MAX];

    put(id, info->id);
    put(name, info->name);
    (void)snprintf(number, sizeof(number), "%zu", ++lists->n_waiting);
    (void)snprintf(pid, sizeof(pid), "%d", (int)info->keeper);
    const char *const row[] = { number, id, span_text(info->age_ms / 1000, span), pid, name };
    table_add(&lists->waiting, row);
}

static int add(const struct carrel_sandbox_info *info, void *context)
{
    if (info->is_waiting)
        add_waiting(context, info);
    else
        add_living(context, info);
    return 0;
}

static void lists_finish(struct lists lists)
{
    table_finish(lists.living);
    table_finish(lists.waiting);
}
DEFINE_AUTO(struct lists, lists_finish)

static int print_tables(const struct carrel_sandbox_query *query, struct carrel_error *err)
{
    static const char *const titles[] = { "ID", "NAME", "STATE", "AGE", "LEASE", "PROCS",
        "ROOT", "LABELS" };
    static const char *const queue[] = { "QUEUE", "ID", "WAITING", "PID", "NAME" };
    static const size_t queue_widths[] = { 5, 18, 7, 7, 0 };
    AUTO(lists_finish)
    struct lists lists = { .living = TABLE_INIT(COLUMNS),
        .waiting = TABLE_INIT(ARRAY_LEN(queue)) };

    table_add(&lists.living, titles);
    table_add(&lists.waiting, queue);
    int r = carrel_sandbox_each(query, add, &lists, err);
    if (r < 0)
        return r;
    if (lists.living.text.is_short || lists.waiting.text.is_short)
        return err_set_errno(err, -ENOMEM, "list the sandboxes");
    if (table_has_rows(&lists.living))
        table_print(&lists.living, NULL);
    if (table_has_rows(&lists.waiting)) {
        (void)fputs(table_has_rows(&lists.living) ? "\n" : "", stdout);
        table_print(&lists.waiting, queue_widths);
    }
    return 0;
}

static int list_all(const struct list_args *args)
{
    const struct carrel_sandbox_query query = {
        .size = sizeof(query),
        .labels = args->labels,
        .has_dead = args->has_dead,
    };
    struct carrel_error err = { 0 };
    AUTO(carrel_free) char *json = NULL;

    if (!args->report.is_json) {
        int r = print_tables(&query, &err);
        return r < 0 ? report_fail(false, &err) : report_finish(0);
    }
    int r = carrel_sandbox_list(&query, &json, &err);
    return r < 0 ? report_fail(true, &err) : report_print_line(json, 0);
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
