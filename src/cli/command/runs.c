/* runs.c - carrel runs: what there was, what came of it, and what may go. */
#include "core/record/runs.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/str.h"
#include "cli/args/report_args.h"
#include "cli/commands.h"
#include "cli/print/report.h"
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

struct runs_args {
    struct report_args report;
    uint64_t older_than_ms;
    bool has_age;
    uint64_t keep;
    bool has_keep;
    bool is_dry_run;
};

static const char help[] =
        "Usage: carrel runs [list] [options]\n"
        "       carrel runs show RUN [--json]\n"
        "       carrel runs prune [--older-than TIME] [--keep N] [--dry-run] [--json]\n\n"
        "Lists runs, newest first; shows what one asked for and what came of it; removes runs\n"
        "that are old enough and not among the newest. A run in progress is never touched, "
        "nor\n"
        "one whose workspace is still there.\n\nOptions:";

static int take_older_than(void *t, const char *v, struct carrel_error *err)
{
    struct runs_args *args = t;

    args->has_age = true;
    return str_parse_duration(v, &args->older_than_ms, err);
}

static int take_keep(void *t, const char *v, struct carrel_error *err)
{
    struct runs_args *args = t;
    char shown[64];

    args->has_keep = true;
    if (str_parse_u64(v, &args->keep) < 0)
        return err_set(err, -EINVAL, "'%s' is not a number; expected one such as 100",
                str_escape(v, strlen(v), shown, sizeof(shown)));
    return 0;
}

static const struct option_row rows[] = {
    { "older-than", "TIME", "prune: only runs that began longer ago, such as 30d",
            .take = take_older_than },
    { "keep", "N", "prune: the newest N runs stay", .take = take_keep },
    OPTION_FLAG("dry-run", "prune: say what would go", struct runs_args, is_dry_run),
    OPTION_FLAG("json", "print JSON, and nothing else", struct runs_args, report.is_json),
    OPTION_FLAG("help", "this text", struct runs_args, report.wants_help),
};

static void write_entry(const struct run_entry *entry, struct json *json, const char *key)
{
    json_object(json, key);
    json_str(json, "run", entry->key);
    json_str(json, "task", entry->task[0] ? entry->task : NULL);
    json_str(json, "state", run_state_name(entry->state));
    json_str(json, "began", entry->began[0] ? entry->began : NULL);
    json_str(json, "reason", entry->reason[0] ? entry->reason : NULL);
    if (entry->has_status)
        json_i64(json, "status", entry->status);
    else
        json_null(json, "status");
    if (entry->has_duration)
        json_u64(json, "duration_ms", entry->duration_ms);
    else
        json_null(json, "duration_ms");
    json_u64(json, "bytes", entry->bytes);
    if (entry->argv)
        json_raw(json, "argv", entry->argv, strlen(entry->argv));
    else
        json_null(json, "argv");
    json_end_object(json);
}

static const char *or_dash(const char *text)
{
    return text[0] ? text : "-";
}

/* The words of a command line as one line that is safe on a terminal. */
static const char *argv_text(const struct run_entry *entry, char *out, size_t size)
{
    if (!entry->argv)
        return "";
    return str_escape(entry->argv, strlen(entry->argv), out, size);
}

static void print_entry(const struct run_entry *entry)
{
    char size[32];
    char status[32] = "-";
    char words[64];
    char began[32];

    if (entry->has_status)
        (void)snprintf(status, sizeof(status), "%" PRId64, entry->status);
    (void)snprintf(began, sizeof(began), "%.19s", or_dash(entry->began));
    printf("%-18s  %-19s  %-12s  %-14s  %6s  %7s  %s\n", entry->key, began,
            run_state_name(entry->state), or_dash(entry->reason), status,
            str_size(entry->bytes, size), argv_text(entry, words, sizeof(words)));
}

static int list(const struct runs_args *args)
{
    struct carrel_error err = { 0 };
    AUTO(run_list_finish) struct run_list all = { 0 };
    AUTO(buf_finish) struct buf text = BUF_INIT(SIZE_MAX / 4);
    struct json json = { .out = &text };

    if (runs_list(&all, &err) < 0)
        return report_error(STATUS_FAILED, &err);
    if (!args->report.is_json) {
        if (all.n > 0)
            printf("%-18s  %-19s  %-12s  %-14s  %6s  %7s  %s\n", "RUN", "BEGAN (UTC)",
                    "JOURNAL", "REASON", "STATUS", "SIZE", "COMMAND");
        for (size_t i = 0; i < all.n; i++)
            print_entry(&all.items[i]);
        return report_finish(0);
    }
    json_object(&json, NULL);
    json_array(&json, "runs");
    for (size_t i = 0; i < all.n; i++)
        write_entry(&all.items[i], &json, NULL);
    json_end_array(&json);
    json_end_object(&json);
    return report_print_json(&text, 0);
}

static void print_file(const char *name, uint64_t bytes, void *context)
{
    char size[32];
    char shown[512];

    (void)context;
    printf("  %-7s %s\n", str_size(bytes, size),
            str_escape(name, strlen(name), shown, sizeof(shown)));
}

static void add_file(const char *name, uint64_t bytes, void *context)
{
    struct json *json = context;

    json_object(json, NULL);
    json_str(json, "name", name);
    json_u64(json, "bytes", bytes);
    json_end_object(json);
}

static int show_json(const struct run_entry *entry)
{
    struct carrel_error err = { 0 };
    AUTO(buf_finish) struct buf result = BUF_INIT(SIZE_MAX / 4);
    AUTO(buf_finish) struct buf text = BUF_INIT(SIZE_MAX / 4);
    struct json json = { .out = &text };
    char dir[PATH_MAX];

    json_object(&json, NULL);
    write_entry(entry, &json, "run");
    json_array(&json, "files");
    int r = runs_files(entry->key, dir, sizeof(dir), add_file, &json, &err);
    json_end_array(&json);
    json_str(&json, "directory", dir);
    if (r == 0)
        r = runs_result(entry->key, &result, &err);
    if (r < 0)
        return report_error(STATUS_FAILED, &err);
    if (result.len > 0)
        json_raw(&json, "result", result.data, result.len);
    else
        json_null(&json, "result");
    json_end_object(&json);
    return report_print_json(&text, 0);
}

static int show_text(const struct run_entry *entry)
{
    struct carrel_error err = { 0 };
    char words[4096];
    char time[32];
    char dir[PATH_MAX];

    printf("run       %s\n", entry->key);
    if (entry->task[0])
        printf("task      %s\n", entry->task);
    printf("began     %s\n", or_dash(entry->began));
    printf("journal   %s\n", run_state_name(entry->state));
    printf("reason    %s\n", or_dash(entry->reason));
    if (entry->has_status)
        printf("status    %" PRId64 "\n", entry->status);
    if (entry->has_duration)
        printf("duration  %s\n", str_duration(entry->duration_ms, time));
    printf("command   %s\n", argv_text(entry, words, sizeof(words)));
    (void)puts("files");
    if (runs_files(entry->key, dir, sizeof(dir), print_file, NULL, &err) < 0)
        return report_error(STATUS_FAILED, &err);
    printf("in        %s\n", dir);
    return report_finish(0);
}

static int show(const struct runs_args *args, const char *name)
{
    struct carrel_error err = { 0 };
    AUTO(run_entry_finish) struct run_entry entry = { 0 };

    if (!name) {
        (void)err_set(&err, -EINVAL, "which run? expected 'carrel runs show RUN'");
        return report_error(STATUS_FAILED, &err);
    }
    if (runs_find(name, &entry, &err) < 0)
        return report_error(STATUS_FAILED, &err);
    return args->report.is_json ? show_json(&entry) : show_text(&entry);
}

struct removal {
    const struct runs_args *args;
    struct json json;
};

static void on_removed(const struct run_entry *entry, void *context)
{
    struct removal *removal = context;

    if (removal->args->report.is_json)
        json_str(&removal->json, NULL, entry->key);
    else
        printf("%s %s\n", removal->args->is_dry_run ? "would remove" : "removed", entry->key);
}

static int prune(const struct runs_args *args)
{
    struct carrel_error err = { 0 };
    AUTO(buf_finish) struct buf text = BUF_INIT(SIZE_MAX / 4);
    struct removal removal = { .args = args, .json = { .out = &text } };
    const struct runs_prune what = {
        .older_than_s = args->older_than_ms / 1000,
        .keep = args->keep,
        .is_dry_run = args->is_dry_run,
        .each = on_removed,
        .context = &removal,
    };

    if (!args->has_age && !args->has_keep) {
        (void)err_set(
                &err, -EINVAL, "which runs? expected --older-than TIME, --keep N, or both");
        return report_error(STATUS_FAILED, &err);
    }
    json_object(&removal.json, NULL);
    json_array(&removal.json, "removed");
    if (runs_prune(&what, &err) < 0)
        return report_error(STATUS_FAILED, &err);
    json_end_array(&removal.json);
    json_end_object(&removal.json);
    return args->report.is_json ? report_print_json(&text, 0) : report_finish(0);
}

int cmd_runs(int argc, char **argv)
{
    struct carrel_error err = { 0 };
    struct runs_args args = { 0 };
    char shown[64];

    AUTO(free) char **words = calloc((size_t)argc + 3, sizeof(*words));
    int n = words ? options_parse_mixed(rows, ARRAY_LEN(rows), argc, argv, &args, words, &err)
                  : err_set_errno(&err, -ENOMEM, "arguments");
    if (n > 2)
        n = err_set(&err, -EINVAL, "unexpected word '%s'; see 'carrel runs --help'",
                str_escape(words[2], strlen(words[2]), shown, sizeof(shown)));
    if (n < 0)
        return report_error(STATUS_FAILED, &err);
    if (args.report.wants_help) {
        (void)puts(help);
        options_print(rows, ARRAY_LEN(rows));
        return report_finish(0);
    }
    if (!words[0] || (strcmp(words[0], "list") == 0 && !words[1]))
        return list(&args);
    if (strcmp(words[0], "show") == 0)
        return show(&args, words[1]);
    if (strcmp(words[0], "prune") == 0 && !words[1])
        return prune(&args);
    (void)err_set(&err, -EINVAL, "'%s' is not one of list, show, prune",
            str_escape(words[0], strlen(words[0]), shown, sizeof(shown)));
    return report_error(STATUS_FAILED, &err);
}
