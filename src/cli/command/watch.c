/* watch.c - carrel watch: changes in a sandbox, as they happen. */
#include "base/auto.h"
#include "base/err.h"
#include "base/json.h"
#include "base/str.h"
#include "cli/args/files_args.h"
#include "cli/commands.h"
#include "cli/print/report.h"
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>

static int print_json(const struct carrel_watch_event *event, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(64U << 10);
    struct json json = { .out = &text };

    json_object(&json, NULL);
    json_str(&json, "event", carrel_watch_kind_name(event->kind));
    json_str(&json, "path", event->path);
    if (event->to)
        json_str(&json, "to", event->to);
    json_bool(&json, "is_directory", event->is_directory);
    json_end_object(&json);
    return report_print_json(&text, 0) == 0 ? 0 : err_set_errno(err, -EPIPE, "write an event");
}

static int print_line(const struct carrel_watch_event *event, struct carrel_error *err)
{
    char path[2 * PATH_MAX];
    char to[2 * PATH_MAX];

    (void)str_escape(event->path, strlen(event->path), path, sizeof(path));
    if (event->kind == CARREL_WATCH_READY) {
        (void)fprintf(stderr, "carrel: watching '%s'\n", path);
        return 0;
    }
    if (event->to)
        (void)str_escape(event->to, strlen(event->to), to, sizeof(to));
    printf("%-8s %s%s%s%s\n", carrel_watch_kind_name(event->kind), path,
            event->is_directory ? "/" : "", event->to ? " -> " : "", event->to ? to : "");
    return fflush(stdout) == 0 ? 0 : err_set_errno(err, -errno, "write an event");
}

/* 1 and the next event, 0 after the last one. */
static int wait_for_event(struct carrel_watch *watch, const struct carrel_watch_event **event,
        struct carrel_error *err)
{
    struct pollfd fd = { .fd = carrel_watch_fd(watch), .events = POLLIN };
    int r;

    while ((r = carrel_watch_next(watch, event, err)) == 0)
        if (poll(&fd, 1, -1) < 0 && errno != EINTR)
            return err_set_errno(err, -errno, "poll");
    return r < 0 ? r : (*event)->kind != CARREL_WATCH_END;
}

static int follow(
        struct carrel_watch *watch, const struct files_args *args, struct carrel_error *err)
{
    const struct carrel_watch_event *event = NULL;
    uint64_t told = 0;
    int r;

    while ((r = wait_for_event(watch, &event, err)) > 0) {
        r = args->is_json ? print_json(event, err) : print_line(event, err);
        if (r < 0)
            return r;
        if (event->kind != CARREL_WATCH_READY && ++told == args->count)
            return 0;
    }
    return r;
}

static int run(const struct files_args *args, char **words, int n)
{
    struct carrel_error err = { 0 };
    struct carrel_sandbox *sandbox = NULL;
    struct carrel_watch *watch = NULL;
    const char *path = NULL;

    (void)n;
    int r = files_open(words[0], &sandbox, &path, &err);
    if (r == 0)
        r = carrel_watch_open(sandbox, path, &args->options, &watch, &err);
    carrel_sandbox_free(sandbox);
    if (r == 0)
        r = follow(watch, args, &err);
    carrel_watch_free(watch);
    return r < 0 ? report_error(STATUS_FAILED, &err) : 0;
}

int cmd_watch(int argc, char **argv)
{
    static const struct option_row rows[] = {
        FILES_FLAG("r", "include subdirectories, also new ones", options.is_recursive),
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
