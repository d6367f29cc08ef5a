/* runs.c - carrel runs: lists, shows and prunes past runs. */
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/str.h"
#include "cli/args/subcommands.h"
#include "cli/commands.h"
#include "cli/print/report.h"
#include <carrel/journal.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

DEFINE_AUTO(struct carrel_run_record *, carrel_runs_free)

struct runs_args {
    struct subcommand_args common;
    uint64_t older_than_ms;
    bool has_age;
    uint64_t keep;
    bool has_keep;
    bool is_dry_run;
};

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

static void write_entry(const struct carrel_run_info *entry, struct json *json, const char *key)
{
    json_object(json, key);
    json_str(json, "run", entry->key);
    json_str(json, "task", entry->task);
    json_str(json, "state", carrel_record_state_name(entry->state));
    json_str(json, "began", entry->began);
    json_str(json, "reason", entry->reason);
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
    return text ? text : "-";
}

/* The words of a command line as one line that is safe on a terminal. */
static const char *argv_text(const struct carrel_run_info *entry, char *out, size_t size)
{
    if (!entry->argv)
        return "";
    return str_escape(entry->argv, strlen(entry->argv), out, size);
}

static void print_entry(const struct carrel_run_info *entry)
{
    char size[32];
    char status[32] = "-";
    char words[64];
    char began[32];

    if (entry->has_status)
        (void)snprintf(status, sizeof(status), "%" PRId64, entry->status);
    (void)snprintf(began, sizeof(began), "%.19s", or_dash(entry->began));
    printf("%-18s  %-19s  %-12s  %-14s  %6s  %7s  %s\n", entry->key, began,
            carrel_record_state_name(entry->state), or_dash(entry->reason), status,
            str_size(entry->bytes, size), argv_text(entry, words, sizeof(words)));
}

/* What the listing has so far. */
struct listing {
    bool is_json;
    bool has_title;
    struct json json;
};

static int list_one(const struct carrel_run_info *entry, void *context)
{
    struct listing *listing = context;

    if (listing->is_json) {
        write_entry(entry, &listing->json, NULL);
        return 0;
    }
    if (!listing->has_title)
        printf("%-18s  %-19s  %-12s  %-14s  %6s  %7s  %s\n", "RUN", "BEGAN (UTC)", "JOURNAL",
                "REASON", "STATUS", "SIZE", "COMMAND");
    listing->has_title = true;
    print_entry(entry);
    return 0;
}

static int list(const struct subcommand_args *args)
{
    struct carrel_error err = { 0 };
    AUTO(buf_finish) struct buf text = BUF_INIT(SIZE_MAX / 4);
    struct listing listing = { .is_json = args->is_json, .json = { .out = &text } };

    json_object(&listing.json, NULL);
    json_array(&listing.json, "runs");
    if (carrel_runs_each(list_one, &listing, &err) < 0)
        return report_fail(args->is_json, &err);
    json_end_array(&listing.json);
    json_end_object(&listing.json);
    return args->is_json ? report_print_json(&text, 0) : report_finish(0);
}

static int print_file(const char *name, uint64_t bytes, void *context)
{
    char size[32];
    char shown[512];

    (void)context;
    printf("  %-7s %s\n", str_size(bytes, size),
            str_escape(name, strlen(name), shown, sizeof(shown)));
    return 0;
}

static int add_file(const char *name, uint64_t bytes, void *context)
{
    struct json *json = context;

    json_object(json, NULL);
    json_str(json, "name", name);
    json_u64(json, "bytes", bytes);
    json_end_object(json);
    return 0;
}

static int show_json(const struct carrel_run_record *run)
{
    struct carrel_error err = { 0 };
    AUTO(carrel_free) char *result = NULL;
    AUTO(buf_finish) struct buf text = BUF_INIT(SIZE_MAX / 4);
    struct json json = { .out = &text };

    json_object(&json, NULL);
    write_entry(carrel_runs_info(run), &json, "run");
    json_array(&json, "files");
    int r = carrel_runs_each_file(run, add_file, &json, &err);
    json_end_array(&json);
    json_str(&json, "directory", carrel_runs_directory(run));
    if (r == 0)
        r = carrel_runs_result(run, &result, &err);
    if (r < 0)
        return report_fail(true, &err);
    if (result)
        json_raw(&json, "result", result, strlen(result));
    else
        json_null(&json, "result");
    json_end_object(&json);
    return report_print_json(&text, 0);
}

static int show_text(const struct carrel_run_record *run)
{
    const struct carrel_run_info *entry = carrel_runs_info(run);
    struct carrel_error err = { 0 };
    char words[4096];
    char time[32];

    printf("run       %s\n", entry->key);
    if (entry->task)
        printf("task      %s\n", entry->task);
    printf("began     %s\n", or_dash(entry->began));
    printf("journal   %s\n", carrel_record_state_name(entry->state));
    printf("reason    %s\n", or_dash(entry->reason));
    if (entry->has_status)
        printf("status    %" PRId64 "\n", entry->status);
    if (entry->has_duration)
        printf("duration  %s\n", str_duration(entry->duration_ms, time));
    printf("command   %s\n", argv_text(entry, words, sizeof(words)));
    (void)puts("files");
    if (carrel_runs_each_file(run, print_file, NULL, &err) < 0)
        return report_error(STATUS_FAILED, &err);
    printf("in        %s\n", carrel_runs_directory(run));
    return report_finish(0);
}

static int show(const struct subcommand_args *args)
{
    struct carrel_error err = { 0 };
    AUTO(carrel_runs_free) struct carrel_run_record *run = NULL;

    if (carrel_runs_find(args->words[0], &run, &err) < 0)
        return report_fail(args->is_json, &err);
    return args->is_json ? show_json(run) : show_text(run);
}

struct removal {
    const struct runs_args *args;
    struct json json;
};

static int on_removed(const struct carrel_run_info *entry, void *context)
{
    struct removal *removal = context;

    if (removal->args->common.is_json)
        json_str(&removal->json, NULL, entry->key);
    else
        printf("%s %s\n", removal->args->is_dry_run ? "would remove" : "removed", entry->key);
    return 0;
}

static int prune(const struct subcommand_args *args)
{
    const struct runs_args *own = container_of(args, const struct runs_args, common);
    struct carrel_error err = { 0 };
    AUTO(buf_finish) struct buf text = BUF_INIT(SIZE_MAX / 4);
    struct removal removal = { .args = own, .json = { .out = &text } };
    struct carrel_runs_prune_options options = CARREL_RUNS_PRUNE_OPTIONS_INIT;

    if (!own->has_age && !own->has_keep) {
        (void)err_set(&err, -EINVAL,
                "no runs selected; expected --older-than TIME, --keep N, or both");
        return report_fail(args->is_json, &err);
    }
    options.older_than_s = own->older_than_ms / 1000;
    options.keep = own->keep;
    options.is_dry_run = own->is_dry_run;
    json_object(&removal.json, NULL);
    json_array(&removal.json, "removed");
    if (carrel_runs_prune(&options, on_removed, &removal, &err) < 0)
        return report_fail(args->is_json, &err);
    json_end_array(&removal.json);
    json_end_object(&removal.json);
    return args->is_json ? report_print_json(&text, 0) : report_finish(0);
}

enum { OLDER_THAN, KEEP, DRY_RUN };

static const struct option_row rows[] = {
    [OLDER_THAN] = { "older-than", "TIME",
            "prune: only runs that started longer ago, such as 30d", .take = take_older_than },
    [KEEP] = { "keep", "N", "prune: keep the newest N runs", .take = take_keep },
    [DRY_RUN] = OPTION_FLAG("dry-run", "prune: print what would be removed, remove nothing",
            struct runs_args, is_dry_run),
};

static const struct subcommand verbs[] = {
    { "list", "", "list runs, newest first", NULL, 0, 0, 0, list, NULL },
    { "show", "RUN", "print the request and the result of a run", NULL, 1, 1, 0, show, NULL },
    { "prune", "", "remove old runs",
            "A run in progress is never removed, nor one whose workspace exists.", 0, 0,
            OPTION_BIT(OLDER_THAN) | OPTION_BIT(KEEP) | OPTION_BIT(DRY_RUN), prune, NULL },
};

int cmd_runs(int argc, char **argv)
{
    static const struct subcommands set = {
        .command = "runs",
        .help = "Usage: carrel runs [SUBCOMMAND] [options] [RUN]\n\n"
                "Reads and removes the records of runs. RUN is a run id or the beginning of\n"
                "one. Without a subcommand the runs are listed.",
        .list = verbs,
        .n = ARRAY_LEN(verbs),
        .rows = rows,
        .n_rows = ARRAY_LEN(rows),
        .has_default = true,
    };
    struct runs_args args = { 0 };

    return subcommands_run(&set, argc, argv, &args.common);
}
