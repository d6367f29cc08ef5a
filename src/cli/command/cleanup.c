/* cleanup.c - carrel cleanup. */
#include "base/auto.h"
#include "base/err.h"
#include "base/json.h"
#include "base/str.h"
#include "cli/args/report_args.h"
#include "cli/commands.h"
#include "core/client/all.h"
#include "core/host/cleanup.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>

static const char help[] =
        "Usage: carrel cleanup [options]\n\n"
        "Removes what is left of sandboxes whose carrel was killed: processes, cgroups, locks\n"
        "and entries in the list of living ones, of this user; finishes workspaces that were\n"
        "half made or half removed; puts files right that an apply had changed when it was\n"
        "killed; and removes pristine trees and other caches that no workspace needs and no\n"
        "run used for a month, and layers that nobody has. Every run does a little of it\n"
        "anyway. Live sandboxes, the output of finished runs and changed work in workspaces\n"
        "are never touched. The exit status is 0, also when there was nothing to do.";

struct cleanup_args {
    struct report_args report; /* first: the shared rows take it for their own */
    bool is_all;
    bool is_force;
};

static const struct option_row rows[] = {
    OPTION_FLAG("all", "end every living sandbox first", struct cleanup_args, is_all),
    OPTION_FLAG("force", "with --all: kill keepers instead of asking them", struct cleanup_args,
            is_force),
    REPORT_JSON,
    REPORT_HELP,
};

static int print_json(const struct cleanup *cleanup, int status)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(64U << 10);
    struct json json = { .out = &text };

    json_object(&json, NULL);
    json_bool(&json, "ok", status == 0);
    json_u64(&json, "removed", cleanup->sandboxes);
    json_u64(&json, "entries", cleanup->entries);
    json_u64(&json, "workspaces", cleanup->workspaces);
    json_u64(&json, "checkouts", cleanup->checkouts);
    json_u64(&json, "layers", cleanup->layers);
    json_u64(&json, "caches", cleanup->caches);
    json_array(&json, "mended");
    for (size_t i = 0; i < cleanup->n_mended; i++)
        json_str(&json, NULL, cleanup->mended[i].top);
    json_end_array(&json);
    json_array(&json, "runtimes");
    for (size_t i = 0; i < cleanup->n_rows; i++) {
        const struct cleanup_row *row = &cleanup->rows[i];
        json_object(&json, NULL);
        json_str(&json, "name", row->runtime);
        json_u64(&json, "sandboxes", row->sandboxes);
        json_str(&json, "error", row->error.code < 0 ? row->error.message : NULL);
        json_end_object(&json);
    }
    json_end_array(&json);
    json_end_object(&json);
    return report_print_json(&text, status);
}

static void print_text(const struct cleanup *cleanup)
{
    char shown[4 * PATH_MAX];

    if (cleanup->sandboxes + cleanup->entries + cleanup->workspaces + cleanup->checkouts +
                    cleanup->layers + cleanup->caches + cleanup->n_mended ==
            0)
        (void)puts("nothing to clean up");
    if (cleanup->entries > 0)
        printf("removed the entr%s of %u sandbox%s that %s killed\n",
                cleanup->entries == 1 ? "y" : "ies", cleanup->entries,
                cleanup->entries == 1 ? "" : "es", cleanup->entries == 1 ? "was" : "were");
    for (size_t i = 0; i < cleanup->n_rows; i++)
        if (cleanup->rows[i].sandboxes > 0)
            printf("removed what was left of %u sandbox%s (runtime %s)\n",
                    cleanup->rows[i].sandboxes, cleanup->rows[i].sandboxes == 1 ? "" : "es",
                    cleanup->rows[i].runtime);
    if (cleanup->workspaces > 0)
        printf("finished %u workspace%s that a crash had left\n", cleanup->workspaces,
                cleanup->workspaces == 1 ? "" : "s");
    if (cleanup->checkouts > 0)
        printf("removed %u pristine tree%s\n", cleanup->checkouts,
                cleanup->checkouts == 1 ? "" : "s");
    if (cleanup->layers > 0)
        printf("removed %u layer%s\n", cleanup->layers, cleanup->layers == 1 ? "" : "s");
    if (cleanup->caches > 0)
        printf("removed %u cached thing%s that nobody used for long\n", cleanup->caches,
                cleanup->caches == 1 ? "" : "s");
    for (size_t i = 0; i < cleanup->n_mended; i++) {
        const struct cleanup_mended *mended = &cleanup->mended[i];
        printf("put your files right in %s, where an apply was cut off%s\n",
                str_escape(mended->top, strlen(mended->top), shown, sizeof(shown)),
                mended->is_folder ? "" : "; git status shows what is there");
    }
}

static int clean_up(const struct cleanup_args *args, struct cleanup *cleanup)
{
    struct carrel_error err = { 0 };

    if (args->is_force && !args->is_all) {
        (void)err_set(&err, -EINVAL, "--force goes with --all: it is about living sandboxes");
        return report_error(STATUS_FAILED, &err);
    }
    if (args->is_all && client_end_all(args->is_force, &err) < 0)
        return report_error(STATUS_FAILED, &err);
    return cleanup_run(cleanup, &err) < 0 ? report_error(STATUS_FAILED, &err) : 0;
}

int cmd_cleanup(int argc, char **argv)
{
    struct cleanup_args args = { 0 };
    AUTO(cleanup_finish) struct cleanup cleanup = { 0 };

    int r = report_args_parse(rows, ARRAY_LEN(rows), help, argc, argv, &args.report);
    if (r != 0)
        return r < 0 ? STATUS_FAILED : 0;
    int status = clean_up(&args, &cleanup);
    if (args.report.is_json)
        return print_json(&cleanup, status);
    if (status == 0 || cleanup.sandboxes + cleanup.workspaces + cleanup.n_mended > 0)
        print_text(&cleanup);
    return report_finish(status);
}
