/* workspace_look.c - carrel workspace list, show, status. */
#include "base/auto.h"
#include "base/err.h"
#include "base/json.h"
#include "base/str.h"
#include "cli/args/workspace_args.h"
#include "cli/command/workspace.h"
#include "cli/print/report.h"
#include "cli/print/table.h"
#include "cli/print/workspace_print.h"
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <time.h>

#define JSON_MAX (SIZE_MAX / 4)
#define ID_SHOWN 10 /* hex digits of a commit */

DEFINE_AUTO(struct carrel_workspace_report *, carrel_workspace_report_free)

/* The list, as text and as JSON. */
struct listing {
    struct table table;
    struct buf text;
    struct json json;
};

enum { COLUMNS = 6 }; /* and the repository, if those of all are listed */

static const char *const titles[] = { "RUN", "TASK", "STATE", "BASE", "AGE", "BRANCH",
    "REPOSITORY" };

static void begin_listing(struct listing *listing, bool has_repos)
{
    *listing = (struct listing){
        .table = TABLE_INIT(has_repos ? COLUMNS + 1 : COLUMNS),
        .text = BUF_INIT(JSON_MAX),
    };
    listing->json.out = &listing->text;
    table_add(&listing->table, titles);
    json_object(&listing->json, NULL);
    json_bool(&listing->json, "ok", true);
    json_array(&listing->json, "workspaces");
}

static void finish_listing(struct listing *listing)
{
    table_finish(listing->table);
    buf_finish(listing->text);
}

static int list_one(const struct carrel_workspace_info *info, void *context)
{
    struct listing *listing = context;
    const char *repo = info->top ? info->top : info->repository;
    char shown[4 * PATH_MAX], state[64], base[ID_SHOWN + 1], age[SPAN_MAX];

    repo = repo ? repo : "-";
    (void)snprintf(base, sizeof(base), "%.*s", ID_SHOWN, info->base ? info->base : "-");
    const char *const cells[] = { info->run, info->task, workspace_state_text(info, state),
        base, workspace_age(info->created_s, age),
        info->is_folder ? "(folder)"
        : info->branch  ? info->branch
                        : "",
        str_escape(repo, strlen(repo), shown, sizeof(shown)) };
    table_add(&listing->table, cells);
    json_object(&listing->json, NULL);
    workspace_write(&listing->json, info);
    json_end_object(&listing->json);
    return 0;
}

static int print_listing(struct listing *listing, const struct subcommand_args *args)
{
    if (args->is_json) {
        json_end_array(&listing->json);
        json_end_object(&listing->json);
        return report_print_json(&listing->text, 0);
    }
    if (table_has_rows(&listing->table))
        table_print(&listing->table, NULL);
    else
        (void)fprintf(stderr,
                listing->table.columns > COLUMNS
                        ? "no workspaces; 'carrel run --workspace -- PROGRAM' makes one\n"
                        : "no workspaces of this repository; --all shows those of others\n");
    return report_finish(0);
}

int verb_list(const struct subcommand_args *args)
{
    struct carrel_error err = { 0 };
    struct listing listing;
    int r = -ENOENT;

    if (!workspace_args_of(args)->is_all) {
        begin_listing(&listing, false);
        r = carrel_workspace_each(".", list_one, &listing, &err);
        if (r == -ENOENT)
            finish_listing(&listing);
    }
    if (r == -ENOENT) { /* in no repository: then those of all are meant */
        begin_listing(&listing, true);
        r = carrel_workspace_each(NULL, list_one, &listing, &err);
    }
    int status = r < 0 ? report_fail(args->is_json, &err) : print_listing(&listing, args);
    finish_listing(&listing);
    return status;
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

static void print_changes(const char *name, const struct carrel_workspace_changes *summary,
        uint64_t n_other_commits)
{
    printf("%-11s ", name);
    workspace_put_summary(summary, n_other_commits);
    (void)putchar('\n');
}

/* What a reviewer must not miss: things that something on the host would execute. */
static void print_sensitive(const struct carrel_workspace_changes *summary)
{
    if (summary->n_sensitive == 0)
        return;
    (void)puts("\nlook at these before you use them outside:");
    for (size_t i = 0; i < summary->n_files; i++) {
        const struct carrel_workspace_file *file = summary->files[i];
        if (!file->sensitive)
            continue;
        printf("  %c ", file->status);
        workspace_put(file->path);
        printf(" (%s)\n", file->sensitive);
    }
}

static void print_oddities(const struct carrel_workspace_report *report)
{
    if (report->n_oddities == 0)
        return;
    (void)puts("\nnot among the changes:");
    for (size_t i = 0; i < report->n_oddities; i++) {
        (void)fputs("  ", stdout);
        workspace_put(report->oddities[i]->path);
        printf(" (%s)\n", report->oddities[i]->why);
    }
}

static void print_other_commits(const struct carrel_workspace_info *ws)
{
    if (ws->n_other_commits > 0)
        printf("%-11s %" PRIu64 " commit%s on other branches or in the stash; %s in the "
               "workspace\n",
                "also", ws->n_other_commits, ws->n_other_commits == 1 ? "" : "s",
                ws->n_other_commits == 1 ? "it stays" : "they stay");
}

static void print_report(const struct carrel_workspace_report *report)
{
    const struct carrel_workspace_info *ws = report->info;
    char text[64];

    print_fact("run", ws->run);
    print_fact("task", ws->task);
    print_fact("state", workspace_state_text(ws, text));
    print_fact("note", ws->note);
    print_created(ws->created_s);
    print_fact(ws->is_folder ? "folder" : "repository", ws->top ? ws->top : ws->repository);
    print_fact("branch", ws->branch);
    print_fact("base", ws->base);
    print_fact("opened at", ws->opened_at);
    print_fact("tree", workspace_tree_name(ws->tree));
    print_fact("disk", workspace_size(report->disk_bytes, text));
    print_changes("changes", report->total, ws->n_other_commits);
    if (report->uncommitted->n_files > 0 && report->committed->n_commits > 0)
        print_changes("uncommitted", report->uncommitted, 0);
    print_other_commits(ws);
    print_sensitive(report->total);
    print_oddities(report);
}

static void write_oddities(struct json *json, const struct carrel_workspace_report *report)
{
    json_array(json, "left_out");
    for (size_t i = 0; i < report->n_oddities; i++) {
        json_object(json, NULL);
        json_str(json, "path", report->oddities[i]->path);
        json_str(json, "why", report->oddities[i]->why);
        json_end_object(json);
    }
    json_end_array(json);
}

static int print_report_json(const struct carrel_workspace_report *report)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(JSON_MAX);
    struct json json = { .out = &text };

    json_object(&json, NULL);
    json_bool(&json, "ok", true);
    workspace_write(&json, report->info);
    json_u64(&json, "disk_bytes", report->disk_bytes);
    json_str(&json, "opened", report->info->opened_at);
    workspace_write_summary(&json, "total", report->total);
    workspace_write_summary(&json, "by_commits", report->committed);
    workspace_write_summary(&json, "uncommitted", report->uncommitted);
    write_oddities(&json, report);
    json_end_object(&json);
    return report_print_json(&text, 0);
}

static int get_report(const struct subcommand_args *args, struct carrel_workspace_report **out,
        struct carrel_error *err)
{
    AUTO(carrel_workspace_free) struct carrel_workspace *workspace = NULL;

    int r = verb_find(args, &workspace, err);
    return r < 0 ? r : carrel_workspace_report(workspace, out, err);
}

int verb_show(const struct subcommand_args *args)
{
    AUTO(carrel_workspace_report_free) struct carrel_workspace_report *report = NULL;
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
static struct entry *join(const struct carrel_workspace_report *report, size_t *n)
{
    const struct carrel_workspace_changes *parts[] = { report->committed, report->uncommitted };
    struct entry *all = calloc(parts[0]->n_files + parts[1]->n_files + 1, sizeof(*all));
    size_t filled = 0;

    if (!all)
        return NULL;
    for (size_t p = 0; p < ARRAY_LEN(parts); p++) {
        for (size_t i = 0; i < parts[p]->n_files; i++) {
            const struct carrel_workspace_file *file = parts[p]->files[i];
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
        const struct carrel_workspace_report *report, const struct entry *entries, size_t n)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(JSON_MAX);
    struct json json = { .out = &text };

    json_object(&json, NULL);
    json_bool(&json, "ok", true);
    workspace_write_name(&json, report->info);
    json_str(&json, "state", carrel_workspace_state_name(report->info->state));
    json_bool(&json, "clean", n == 0);
    json_u64(&json, "commits", report->committed->n_commits);
    json_u64(&json, "other_commits", report->info->n_other_commits);
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
        const struct carrel_workspace_report *report, const struct entry *entries, size_t n)
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
        workspace_put(report->oddities[i]->path);
        printf("  (%s)\n", report->oddities[i]->why);
    }
}

int verb_status(const struct subcommand_args *args)
{
    AUTO(carrel_workspace_report_free) struct carrel_workspace_report *report = NULL;
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
    if (report->info->n_other_commits > 0)
        (void)fprintf(stderr, "%s%" PRIu64 " commit%s on other branches or in the stash\n",
                n == 0 ? "no files changed; " : "also ", report->info->n_other_commits,
                report->info->n_other_commits == 1 ? "" : "s");
    else if (n == 0)
        (void)fputs("nothing changed\n", stderr);
    return report_finish(0);
}
