/* cleanup.c - carrel cleanup. */
#include "base/auto.h"
#include "base/err.h"
#include "base/json.h"
#include "base/str.h"
#include "cli/args/report_args.h"
#include "cli/commands.h"
#include "cli/print/report.h"
#include <carrel/host.h>
#include <carrel/sandbox.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>

DEFINE_AUTO(struct carrel_cleanup *, carrel_cleanup_free)

static const char help[] =
        "Usage: carrel cleanup [options]\n\n"
        "Removes what killed runs left behind: processes, cgroups, locks and entries of\n"
        "this user's sandboxes. Completes workspaces that were half created or half\n"
        "removed, restores files that an interrupted apply had changed, and removes\n"
        "caches unused for a month and unused layers. Each run does part of this anyway.\n\n"
        "It never touches living sandboxes, the output of finished runs, or changes in\n"
        "workspaces. Exit status: 0, also if there was nothing to do.";

struct cleanup_args {
    struct report_args report; /* first: the shared rows take it for their own */
    bool is_all;
    bool is_force;
};

static const struct option_row rows[] = {
    OPTION_FLAG("all", "end every living sandbox first", struct cleanup_args, is_all),
    OPTION_FLAG("force", "with --all: kill keepers instead of asking them to end",
            struct cleanup_args, is_force),
    REPORT_JSON,
    REPORT_HELP,
};

static int print_json(const struct carrel_cleanup *cleanup, int status)
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
    for (size_t i = 0; cleanup->mended[i]; i++)
        json_str(&json, NULL, cleanup->mended[i]->top);
    json_end_array(&json);
    json_array(&json, "runtimes");
    for (size_t i = 0; cleanup->runtimes[i]; i++) {
        const struct carrel_cleanup_runtime *runtime = cleanup->runtimes[i];
        json_object(&json, NULL);
        json_str(&json, "name", runtime->name);
        json_u64(&json, "sandboxes", runtime->sandboxes);
        json_str(&json, "error", runtime->error);
        json_end_object(&json);
    }
    json_end_array(&json);
    json_end_object(&json);
    return report_print_json(&text, status);
}

static void print_text(const struct carrel_cleanup *cleanup)
{
    char shown[4 * PATH_MAX];

    if (cleanup->sandboxes + cleanup->entries + cleanup->workspaces + cleanup->checkouts +
                            cleanup->layers + cleanup->caches ==
                    0 &&
            !cleanup->mended[0])
        (void)puts("nothing to clean up");
    if (cleanup->entries > 0)
        printf("removed the entr%s of %u sandbox%s that %s killed\n",
                cleanup->entries == 1 ? "y" : "ies", cleanup->entries,
                cleanup->entries == 1 ? "" : "es", cleanup->entries == 1 ? "was" : "were");
    for (size_t i = 0; cleanup->runtimes[i]; i++) {
        const struct carrel_cleanup_runtime *runtime = cleanup->runtimes[i];
        if (runtime->sandboxes > 0)
            printf("removed what was left of %u sandbox%s (runtime %s)\n", runtime->sandboxes,
                    runtime->sandboxes == 1 ? "" : "es", runtime->name);
    }
    if (cleanup->workspaces > 0)
        printf("completed %u interrupted workspace%s\n", cleanup->workspaces,
                cleanup->workspaces == 1 ? "" : "s");
    if (cleanup->checkouts > 0)
        printf("removed %u cached checkout%s\n", cleanup->checkouts,
                cleanup->checkouts == 1 ? "" : "s");
    if (cleanup->layers > 0)
        printf("removed %u layer%s\n", cleanup->layers, cleanup->layers == 1 ? "" : "s");
    if (cleanup->caches > 0)
        printf("removed %u unused cached item%s\n", cleanup->caches,
                cleanup->caches == 1 ? "" : "s");
    for (size_t i = 0; cleanup->mended[i]; i++) {
        const struct carrel_cleanup_mended *mended = cleanup->mended[i];
        printf("restored your files in %s after an interrupted apply%s\n",
                str_escape(mended->top, strlen(mended->top), shown, sizeof(shown)),
                mended->is_folder ? "" : "; git status shows what is there");
    }
}

static int clean_up(const struct cleanup_args *args, struct carrel_cleanup **out)
{
    const struct carrel_destroy_options living = {
        .size = sizeof(living),
        .is_all = true,
        .is_force = args->is_force,
    };
    struct carrel_error err = { 0 };

    if (args->is_force && !args->is_all) {
        (void)err_set(
                &err, -EINVAL, "--force needs --all: it kills the keepers of living sandboxes");
        return report_error(STATUS_FAILED, &err);
    }
    if (args->is_all && carrel_sandbox_destroy_all(&living, NULL, &err) < 0)
        return report_error(STATUS_FAILED, &err);
    return carrel_host_cleanup(out, &err) < 0 ? report_error(STATUS_FAILED, &err) : 0;
}

int cmd_cleanup(int argc, char **argv)
{
    const struct carrel_cleanup nothing = {
        .runtimes = (const struct carrel_cleanup_runtime *const[]){ NULL },
        .mended = (const struct carrel_cleanup_mended *const[]){ NULL },
    };
    AUTO(carrel_cleanup_free) struct carrel_cleanup *removed = NULL;
    struct cleanup_args args = { 0 };

    int r = report_args_parse(rows, ARRAY_LEN(rows), help, argc, argv, &args.report);
    if (r != 0)
        return r < 0 ? STATUS_FAILED : 0;
    int status = clean_up(&args, &removed);
    const struct carrel_cleanup *cleanup = removed ? removed : &nothing;
    if (args.report.is_json)
        return print_json(cleanup, status);
    if (status == 0 || cleanup->sandboxes + cleanup->workspaces > 0 || cleanup->mended[0])
        print_text(cleanup);
    return report_finish(status);
}
