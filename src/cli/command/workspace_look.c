/* workspace_look.c - carrel workspace list, show, status. */
#include "base/auto.h"
#include "base/err.h"
#include "base/json.h"
#include "cli/args/workspace_args.h"
#include "cli/command/workspace.h"
#include "cli/print/report.h"
#include "cli/print/workspace_print.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#define JSON_MAX (SIZE_MAX / 4)
#define ID_SHOWN 10 /* hex digits of a commit */

enum column { COL_RUN, COL_TASK, COL_STATE, COL_BASE, COL_AGE, COL_BRANCH, COLUMNS };

struct row {
    const char *cells[COLUMNS];
    char state[64], base[ID_SHOWN + 1], age[16];
};

static void fill_row(const struct workspace *ws, struct row *row)
{
    (void)snprintf(
            row->base, sizeof(row->base), "%.*s", ID_SHOWN, ws->base[0] ? ws->base : "-");
    row->cells[COL_RUN] = ws->run;
    row->cells[COL_TASK] = ws->task;
    row->cells[COL_STATE] = workspace_state_text(ws, row->state);
    row->cells[COL_BASE] = row->base;
    row->cells[COL_AGE] = workspace_age(ws->created_s, row->age);
    row->cells[COL_BRANCH] = ws->is_folder ? "(folder)" : ws->branch;
}

static void print_row(const char *const *cells, const size_t *widths, const char *repo)
{
    for (size_t i = 0; i < COLUMNS; i++)
        printf("%s%-*s", i ? "  " : "", i < COLUMNS - 1 || repo ? (int)widths[i] : 0, cells[i]);
    if (repo) {
        (void)fputs("  ", stdout);
        workspace_put(repo);
    }
    (void)putchar('\n');
}

static void print_table(const struct workspace_list *list, bool has_repos)
{
    static const char *const titles[COLUMNS] = { "RUN", "TASK", "STATE", "BASE", "AGE",
        "BRANCH" };
    size_t widths[COLUMNS];
    struct row row;

    for (size_t i = 0; i < COLUMNS; i++)
        widths[i] = strlen(titles[i]);
    for (size_t k = 0; k < list->n; k++) {
        fill_row(list->items[k], &row);
        for (size_t i = 0; i < COLUMNS; i++)
            if (strlen(row.cells[i]) > widths[i])
                widths[i] = strlen(row.cells[i]);
    }
    print_row(titles, widths, has_repos ? "REPOSITORY" : NULL);
    for (size_t k = 0; k < list->n; k++) {
        const struct workspace *ws = list->items[k];
        const char *repo = ws->top ? ws->top : ws->repo;
        fill_row(ws, &row);
        print_row(row.cells, widths, has_repos ? (repo ? repo : "-") : NULL);
    }
}

static int print_list_json(const struct workspace_list *list)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(JSON_MAX);
    struct json json = { .out = &text };

    json_object(&json, NULL);
    json_bool(&json, "ok", true);
    json_array(&json, "workspaces");
    for (size_t i = 0; i < list->n; i++) {
        json_object(&json, NULL);
        workspace_write(&json, list->items[i]);
        json_end_object(&json);
    }
    json_end_array(&json);
    json_end_object(&json);
    return report_print_json(&text, 0);
}

int verb_list(const struct subcommand_args *args)
{
    AUTO(workspace_list_free) struct workspace_list *list = NULL;
    struct carrel_error err = { 0 };
    bool is_all = workspace_args_of(args)->is_all;

    int r = is_all ? -ENOENT : workspaces_list(".", &list, &err);
    if (r == -ENOENT) { /* in no repository: then those of all are meant */
        is_all = true;
        r = workspaces_list(NULL, &list, &err);
    }
    if (r < 0)
        return report_fail(args->is_json, &err);
    if (args->is_json)
        return print_list_json(list);
    if (list->n > 0)
        print_table(list, is_all);
    else
        (void)fprintf(stderr,
                is_all ? "no workspaces; 'carrel run --workspace -- PROGRAM' makes one\n"
                       : "no workspaces of this repository; --all shows those of others\n");
    return report_finish(0);
}

static void print_fact(const char *name, const char *value)
{
    if (!value || !value[0])
        return;
    printf("%-11s ", name);
    workspace_put(value);
    (void)putchar('\n');
}

static void print_created(int64_t created_s)
{
    const time_t when = (time_t)created_s;
    char text[64], age[16];
    struct tm tm;

    if (!localtime_r(&when, &tm) || strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm) == 0)
        return;
    printf("%-11s %s (%s ago)\n", "created", text, workspace_age(created_s, age));
}

static void print_changes(
        const char *name, const struct harvest_summary *summary, uint64_t n_other_commits)
{
    printf("%-11s ", name);
    workspace_put_summary(summary, n_other_commits);
    (void)putchar('\n');
}

/* What a reviewer must not miss: things that something on the host would execute. */
static void print_sensitive(const struct harvest_summary *summary)
{
    if (summary->n_sensitive == 0)
        return;
    (void)puts("\nlook at these before you use them outside:");
    for (size_t i = 0; i < summary->n_files; i++) {
        const struct harvest_file *file = &summary->files[i];
        if (!file->sensitive)
            continue;
        printf("  %c ", file->status);
        workspace_put(file->path);
        printf(" (%s)\n", file->sensitive);
    }
}

static void print_oddities(const struct workspace_report *report)
{
    if (report->n_oddities == 0)
        return;
    (void)puts("\nnot among the changes:");
    for (size_t i = 0; i < report->n_oddities; i++) {
        (void)fputs("  ", stdout);
        workspace_put(report->oddities[i].path);
        printf(" (%s)\n", oddity_text(report->oddities[i].kind));
    }
}

static void print_other_commits(const struct workspace *ws)
{
    if (ws->n_other_commits > 0)
        printf("%-11s %" PRIu64 " commit%s on other branches or in the stash; %s in the "
               "workspace\n",
                "also", ws->n_other_commits, ws->n_other_commits == 1 ? "" : "s",
                ws->n_other_commits == 1 ? "it stays" : "they stay");
}

static void print_report(const struct workspace_report *report)
{
    const struct workspace *ws = report->ws;
    char text[64];

    print_fact("run", ws->run);
    print_fact("task", ws->task);
    print_fact("state", workspace_state_text(ws, text));
    print_fact("note", ws->note);
    print_created(ws->created_s);
    print_fact(ws->is_folder ? "folder" : "repository", ws->top ? ws->top : ws->repo);
    print_fact("branch", ws->branch);
    print_fact("base", ws->base);
    print_fact("opened at", report->opened);
    print_fact("tree", workspace_mode_name(ws->mode));
    print_fact("disk", workspace_size(report->disk_bytes, text));
    print_changes("changes", &report->total, ws->n_other_commits);
    if (report->uncommitted.n_files > 0 && report->committed.n_commits > 0)
        print_changes("uncommitted", &report->uncommitted, 0);
    print_other_commits(ws);
    print_sensitive(&report->total);
    print_oddities(report);
}

static void write_oddities(struct json *json, const struct workspace_report *report)
{
    json_array(json, "left_out");
    for (size_t i = 0; i < report->n_oddities; i++) {
        json_object(json, NULL);
        json_str(json, "path", report->oddities[i].path);
        json_str(json, "why", oddity_text(report->oddities[i].kind));
        json_end_object(json);
    }
    json_end_array(json);
}

static int print_report_json(const struct workspace_report *report)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(JSON_MAX);
    struct json json = { .out = &text };

    json_object(&json, NULL);
    json_bool(&json, "ok", true);
    workspace_write(&json, report->ws);
    json_u64(&json, "disk_bytes", report->disk_bytes);
    json_str(&json, "opened", report->opened);
    workspace_write_summary(&json, "total", &report->total);
    workspace_write_summary(&json, "by_commits", &report->committed);
    workspace_write_summary(&json, "uncommitted", &report->uncommitted);
    write_oddities(&json, report);
    json_end_object(&json);
    return report_print_json(&text, 0);
}

static int get_report(const struct subcommand_args *args, struct workspace_report **out,
        struct carrel_error *err)
{
    char name[WORKSPACE_NAME_MAX];

    int r = verb_name(args->words[0], name, err);
    return r < 0 ? r : workspaces_report(name, out, err);
}

int verb_show(const struct subcommand_args *args)
{
    AUTO(workspace_report_free) struct workspace_report *report = NULL;
    struct carrel_error err = { 0 };

    if (get_report(args, &report, &err) < 0)
        return report_fail(args->is_json, &err);
    if (args->is_json)
        return print_report_json(report);
    print_report(report);
    return report_finish(0);
}

/* One changed path with what commits did to it and what was left uncommitted. */
struct entry {
    const char *path;
    char committed, uncommitted; /* 0: nothing */
    const char *sensitive;
};

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct entry *)a)->path, ((const struct entry *)b)->path);
}

/* Both lists as one, sorted; the caller frees it. */
static struct entry *join(const struct workspace_report *report, size_t *n)
{
    const struct harvest_summary *parts[] = { &report->committed, &report->uncommitted };
    struct entry *all = calloc(parts[0]->n_files + parts[1]->n_files + 1, sizeof(*all));
    size_t filled = 0;

    if (!all)
        return NULL;
    for (size_t p = 0; p < ARRAY_LEN(parts); p++) {
        for (size_t i = 0; i < parts[p]->n_files; i++) {
            const struct harvest_file *file = &parts[p]->files[i];
            all[filled++] = (struct entry){
                .path = file->path,
                .committed = p == 0 ? file->status : '\0',
                .uncommitted = p == 1 ? file->status : '\0',
                .sensitive = file->sensitive,
            };
        }
    }
    qsort(all, filled, sizeof(*all), by_path);
    *n = 0;
    for (size_t i = 0; i < filled; i++) {
        if (*n > 0 && strcmp(all[*n - 1].path, all[i].path) == 0) {
            struct entry *same = &all[*n - 1];
            same->committed = all[i].committed ? all[i].committed : same->committed;
            same->uncommitted = all[i].uncommitted ? all[i].uncommitted : same->uncommitted;
        } else {
            all[(*n)++] = all[i];
        }
    }
    return all;
}

static int print_status_json(
        const struct workspace_report *report, const struct entry *entries, size_t n)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(JSON_MAX);
    struct json json = { .out = &text };

    json_object(&json, NULL);
    json_bool(&json, "ok", true);
    workspace_write_name(&json, report->ws);
    json_str(&json, "state", workspaces_state(report->ws));
    json_bool(&json, "clean", n == 0);
    json_u64(&json, "commits", report->committed.n_commits);
    json_u64(&json, "other_commits", report->ws->n_other_commits);
    json_array(&json, "files");
    for (size_t i = 0; i < n; i++) {
        json_object(&json, NULL);
        json_str(&json, "path", entries[i].path);
        json_bytes(&json, "committed", entries[i].committed ? &entries[i].committed : NULL, 1);
        json_bytes(&json, "uncommitted",
                entries[i].uncommitted ? &entries[i].uncommitted : NULL, 1);
        json_str(&json, "sensitive", entries[i].sensitive);
        json_end_object(&json);
    }
    json_end_array(&json);
    write_oddities(&json, report);
    json_end_object(&json);
    return report_print_json(&text, 0);
}

static void print_status(
        const struct workspace_report *report, const struct entry *entries, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        printf("%c%c ", entries[i].committed ? entries[i].committed : '.',
                entries[i].uncommitted ? entries[i].uncommitted : '.');
        workspace_put(entries[i].path);
        if (entries[i].sensitive)
            printf("  (%s)", entries[i].sensitive);
        (void)putchar('\n');
    }
    for (size_t i = 0; i < report->n_oddities; i++) {
        (void)fputs("!! ", stdout);
        workspace_put(report->oddities[i].path);
        printf("  (%s)\n", oddity_text(report->oddities[i].kind));
    }
}

int verb_status(const struct subcommand_args *args)
{
    AUTO(workspace_report_free) struct workspace_report *report = NULL;
    struct carrel_error err = { 0 };
    size_t n = 0;

    if (get_report(args, &report, &err) < 0)
        return report_fail(args->is_json, &err);
    AUTO(free) struct entry *entries = join(report, &n);
    if (!entries) {
        (void)err_set_errno(&err, -ENOMEM, "status");
        return report_fail(args->is_json, &err);
    }
    if (args->is_json)
        return print_status_json(report, entries, n);
    print_status(report, entries, n);
    if (report->ws->n_other_commits > 0)
        (void)fprintf(stderr, "%s%" PRIu64 " commit%s on other branches or in the stash\n",
                n == 0 ? "no files changed; " : "also ", report->ws->n_other_commits,
                report->ws->n_other_commits == 1 ? "" : "s");
    else if (n == 0)
        (void)fputs("nothing changed\n", stderr);
    return report_finish(0);
}
