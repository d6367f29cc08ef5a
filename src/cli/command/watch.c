/* watch.c - carrel watch: changes in a sandbox, as they happen. */
#include "base/auto.h"
#include "base/err.h"
#include "base/json.h"
#include "base/str.h"
#include "cli/args/files_args.h"
#include "cli/commands.h"
#include "cli/print/report.h"
#include "core/files/files_watch.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>

struct watching {
    const struct files_args *args;
    uint64_t told;
};

static int print_json(const struct watch_event *event, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(64U << 10);
    struct json json = { .out = &text };

    json_object(&json, NULL);
    json_str(&json, "event", watch_kind_name(event->kind));
    json_str(&json, "path", event->path);
    if (event->to)
        json_str(&json, "to", event->to);
    json_bool(&json, "is_directory", event->is_directory);
    json_end_object(&json);
    return report_print_json(&text, 0) == 0 ? 0 : err_set_errno(err, -EPIPE, "write an event");
}

static int print_line(const struct watch_event *event, struct carrel_error *err)
{
    char path[2 * PATH_MAX];
    char to[2 * PATH_MAX];

    (void)str_escape(event->path, strlen(event->path), path, sizeof(path));
    if (event->kind == WATCH_READY) {
        (void)fprintf(stderr, "carrel: watching '%s'\n", path);
        return 0;
    }
    if (event->to)
        (void)str_escape(event->to, strlen(event->to), to, sizeof(to));
    printf("%-8s %s%s%s%s\n", watch_kind_name(event->kind), path,
            event->is_directory ? "/" : "", event->to ? " -> " : "", event->to ? to : "");
    return fflush(stdout) == 0 ? 0 : err_set_errno(err, -errno, "write an event");
}

static int hear(const struct watch_event *event, void *context, struct carrel_error *err)
{
    struct watching *watching = context;

    int r = watching->args->is_json ? print_json(event, err) : print_line(event, err);
    if (r < 0 || event->kind == WATCH_READY)
        return r;
    return ++watching->told == watching->args->count;
}

static int run(const struct files_args *args, char **words, int n)
{
    struct carrel_error err = { 0 };
    struct watching watching = { .args = args };
    struct file_access access = FILE_ACCESS_INIT;
    const char *path = NULL;

    (void)n;
    int r = files_open(args, words[0], &access, &path, &err);
    if (r == 0)
        r = files_watch(&access, path, args->is_recursive, hear, &watching, &err);
    file_access_close(&access);
    return r < 0 ? report_error(STATUS_FAILED, &err) : 0;
}

int cmd_watch(int argc, char **argv)
{
    static const struct option_row rows[] = {
        FILES_FLAG("r", "include subdirectories, also new ones", is_recursive),
        { "count", "N", "end after N changes", .take = files_take_count },
        FILES_USER,
        FILES_FLAG("json", "print one JSON object per line", is_json),
        FILES_HELP,
    };
    static const struct files_command command = {
        .name = "watch",
        .words = "SANDBOX:PATH",
        .help = "Prints changes to a file or directory of a sandbox, one per line, until it "
                "is\n"
                "interrupted, the watched path is removed, or the sandbox ends.",
        .rows = rows,
        .n_rows = ARRAY_LEN(rows),
        .min_words = 1,
        .max_words = 1,
        .run = run,
    };

    return files_command_run(&command, argc, argv);
}
