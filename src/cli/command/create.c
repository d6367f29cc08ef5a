/* create.c - carrel create. */
#include "base/auto.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/json.h"
#include "cli/args/sandbox_args.h"
#include "cli/commands.h"
#include "cli/print/report.h"
#include "cli/program.h"
#include <carrel/sandbox.h>
#include <limits.h>
#include <stdio.h>

static const struct option_row rows[] = {
    { "name", "NAME", "a name to use instead of the id; unique", .take = sandbox_take_name },
    { "label", "NAME=VALUE", "a label; repeatable", .take = sandbox_take_label },
    { "from", "SNAPSHOT", "start with the files of a snapshot", .take = sandbox_take_from },
    { "lease", "TIME|none", "end the sandbox after this time unless renewed (default: 1h)",
            .take = sandbox_take_lease },
    { "idle", "TIME|none", "end the sandbox when it was unused for this time (default: none)",
            .take = sandbox_take_idle },
};

static const char *const without[] = { "c", "stdin", "tty", "format", "output", "max-output",
    NULL };

static const struct sandbox_command command = {
    .usage = "carrel create [options]",
    .help = "Creates a sandbox that stays, and prints its id. 'carrel exec ID -- PROGRAM'\n"
            "runs programs in it. It ends with 'carrel destroy ID' or when its lease "
            "expires.\n\n"
            "Takes the options of 'carrel run'; --timeout is the limit of each program.",
    .rows = rows,
    .n_rows = ARRAY_LEN(rows),
    .without = without,
};

static int print_id(const struct sandbox_args *args, const char *id)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(4096);
    struct json json = { .out = &text };

    if (!args->run.is_json) {
        (void)puts(id);
        return report_finish(0);
    }
    json_object(&json, NULL);
    json_str(&json, "id", id);
    json_str(&json, "name", args->name);
    json_end_object(&json);
    return report_print_json(&text, 0);
}

static int create(struct sandbox_args *args)
{
    struct carrel_error err = { 0 };
    AUTO(carrel_sandbox_free) struct carrel_sandbox *sandbox = NULL;
    AUTO(fd_close) int receipt = -1;
    char own[PATH_MAX];

    args->run.workspace.options.program = own_program(own, sizeof(own));
    const struct carrel_sandbox_options options = {
        .size = sizeof(options),
        .run = &args->run.options,
        .name = args->name,
        .labels = (const char *const *)args->labels,
        .from = args->from,
        .lease_ms = !args->has_lease ? 0
                    : args->lease_ms ? args->lease_ms
                                     : CARREL_NEVER,
        .idle_ms = args->idle_ms,
        .receipt = &receipt,
    };
    if (carrel_sandbox_create(&options, &sandbox, &err) < 0)
        return report_fail(args->run.is_json, &err);
    int status = print_id(args, carrel_sandbox_id(sandbox));
    if (status == 0) {
        carrel_sandbox_received(fd_steal(&receipt));
        program_print_note(&args->run, carrel_sandbox_note(sandbox));
    }
    return status;
}

int cmd_create(int argc, char **argv)
{
    struct carrel_error err = { 0 };
    struct sandbox_args args = { 0 };

    int r = sandbox_args_parse(&args, &command, argc, argv, &err);
    int status = r < 0   ? report_fail(args.run.is_json, &err)
                 : r > 0 ? report_finish(0)
                         : create(&args);
    sandbox_args_finish(&args);
    return status;
}
