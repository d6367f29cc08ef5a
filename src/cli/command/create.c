/* create.c - carrel create. */
#include "base/auto.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/trim.h"
#include "cli/args/sandbox_args.h"
#include "cli/commands.h"
#include "cli/print/report.h"
#include "cli/program.h"
#include "core/client/client.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* Not on the stack, which the keeper keeps in memory. NULL: unknown. */
static NO_INLINE char *find_own_program(void)
{
    char path[PATH_MAX];
    const char *own = own_program(path, sizeof(path));

    return own ? strdup(own) : NULL;
}

static int create(struct sandbox_args *args)
{
    struct carrel_error err = { 0 };
    char id[REGISTRY_WORD_MAX + 1];
    char note[CLIENT_NOTE_MAX];
    AUTO(free) char *own = find_own_program();

    args->run.workspace.options.program = own;
    const struct client_request request = {
        .options = &args->run.options,
        .name = args->name,
        .labels = (const char *const *)args->labels,
        .from = args->from,
        .note = note,
        .lease_ms = args->has_lease ? args->lease_ms : CLIENT_LEASE_MS,
        .idle_ms = args->idle_ms,
        .is_apart = true, /* see copy_words() */
    };
    AUTO(fd_close) int receipt = -1;
    int r = client_create(&request, id, &receipt, &err);
    args->run.workspace.options.program = NULL; /* freed with this function */
    int status = r < 0 ? report_fail(args->run.is_json, &err) : print_id(args, id);
    if (status == 0) {
        client_received(fd_steal(&receipt));
        program_print_note(&args->run, note);
    }
    return status;
}

/*
 * The keeper needs the options as long as the sandbox lives, and values of variables may be
 * secrets. Every process can read the argv of exec, so it is copied and then overwritten.
 */
static int copy_words(int argc, char **argv, char ***out, struct carrel_error *err)
{
    char **words = calloc((size_t)argc + 1, sizeof(*words)); /* never freed */
    bool is_short = !words;

    for (int i = 0; !is_short && i < argc; i++) {
        words[i] = strdup(argv[i]);
        is_short = !words[i];
    }
    if (is_short)
        return err_set_errno(err, -ENOMEM, "words");
    *out = words;
    return 0;
}

struct words {
    int n;
    char **list;
};

static int create_from_words(void *arg)
{
    const struct words *given = arg;
    struct carrel_error err = { 0 };
    struct sandbox_args args = { 0 };
    char **words = given->list;

    int r = copy_words(given->n, given->list, &words, &err);
    if (r == 0)
        r = sandbox_args_parse(&args, &command, given->n, words, &err);
    int status = r < 0   ? report_fail(args.run.is_json, &err)
                 : r > 0 ? report_finish(0)
                         : create(&args);
    sandbox_args_finish(&args);
    return status;
}

/* The keeper runs on a stack of its own and releases that of exec. */
int cmd_create(int argc, char **argv)
{
    struct words given = { argc, argv };

    return trim_call(create_from_words, &given);
}
