/* sandbox_args.c - reading them. */
#include "cli/args/sandbox_args.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/str.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void sandbox_args_finish(struct sandbox_args *args)
{
    run_args_finish(&args->run);
    free(args->labels);
    free(args->words);
}

int sandbox_take_name(void *target, const char *value, struct carrel_error *err)
{
    (void)err;
    ((struct sandbox_args *)target)->name = value;
    return 0;
}

int sandbox_take_from(void *target, const char *value, struct carrel_error *err)
{
    (void)err;
    ((struct sandbox_args *)target)->from = value;
    return 0;
}

int sandbox_take_label(void *target, const char *value, struct carrel_error *err)
{
    struct sandbox_args *args = target;
    char **labels = reallocarray(args->labels, args->n_labels + 2, sizeof(*labels));

    if (!labels)
        return err_set_errno(err, -ENOMEM, "labels");
    args->labels = labels;
    labels[args->n_labels++] = (char *)(uintptr_t)value;
    labels[args->n_labels] = NULL;
    return 0;
}

static int take_time(const char *value, uint64_t *out, struct carrel_error *err)
{
    *out = 0;
    if (strcmp(value, "none") == 0)
        return 0;
    int r = str_parse_duration(value, out, err);
    if (r == 0 && *out == 0)
        return err_set(err, -EINVAL, "must be more than 0, or 'none'");
    return r;
}

int sandbox_take_lease(void *target, const char *value, struct carrel_error *err)
{
    ((struct sandbox_args *)target)->has_lease = true;
    return take_time(value, &((struct sandbox_args *)target)->lease_ms, err);
}

int sandbox_take_idle(void *target, const char *value, struct carrel_error *err)
{
    ((struct sandbox_args *)target)->has_idle = true;
    return take_time(value, &((struct sandbox_args *)target)->idle_ms, err);
}

static bool is_among(const char *name, const char *const *names)
{
    for (; names && *names; names++)
        if (strcmp(*names, name) == 0)
            return true;
    return false;
}

/* The command's own rows, then those it shares with `carrel run`. */
static struct option_row *make_rows(const struct sandbox_command *command, size_t *n)
{
    struct option_row *rows = calloc(command->n_rows + n_run_rows, sizeof(*rows));

    *n = 0;
    for (size_t i = 0; rows && i < command->n_rows; i++)
        rows[(*n)++] = command->rows[i];
    for (size_t i = 0; rows && i < n_run_rows; i++)
        if (is_among(run_rows[i].name, command->shared) ||
                (command->without && !is_among(run_rows[i].name, command->without)))
            rows[(*n)++] = run_rows[i];
    return rows;
}

static int check_words(const struct sandbox_command *command, const struct sandbox_args *args,
        struct carrel_error *err)
{
    char shown[64];

    if (args->n_words < command->min_words)
        return err_set(err, -EINVAL, "missing argument; usage: %s", command->usage);
    if (args->n_words <= command->max_words)
        return 0;
    const char *extra = args->words[command->max_words];
    return err_set(err, -EINVAL, "unexpected argument '%s'; usage: %s",
            str_escape(extra, strlen(extra), shown, sizeof(shown)), command->usage);
}

/* Options, the sandbox, options again, and what follows is the program. */
static int parse_program(struct sandbox_args *args, const struct option_row *rows, size_t n,
        const struct sandbox_command *command, int argc, char **argv, struct carrel_error *err)
{
    int at = options_parse(rows, n, argc, argv, args, err);

    if (at < 0 || args->run.wants_help)
        return at < 0 ? at : 0;
    if (at >= argc || strcmp(argv[at - 1], "--") == 0)
        return err_set(err, -EINVAL, "no sandbox given; usage: %s", command->usage);
    args->words[args->n_words++] = argv[at];
    int more = options_parse(rows, n, argc - at, argv + at, args, err);
    if (more < 0 || args->run.wants_help)
        return more < 0 ? more : 0;
    at += more;
    return run_args_program(&args->run, argc - at, argv + at, command->usage, err);
}

int sandbox_args_parse(struct sandbox_args *args, const struct sandbox_command *command,
        int argc, char **argv, struct carrel_error *err)
{
    size_t n;
    AUTO(free) struct option_row *rows = make_rows(command, &n);

    *args = (struct sandbox_args){
        .run.options = CARREL_RUN_OPTIONS_INIT,
        .limits = CARREL_LIMITS_INIT,
    };
    args->words = calloc((size_t)argc + 1, sizeof(*args->words));
    if (!rows || !args->words)
        return err_set_errno(err, -ENOMEM, "options");
    int r;
    if (command->takes_program) {
        r = parse_program(args, rows, n, command, argc, argv, err);
    } else {
        r = options_parse_mixed(rows, n, argc, argv, args, args->words, err);
        args->n_words = r < 0 ? 0 : (size_t)r;
    }
    if (r >= 0 && args->run.wants_help) {
        printf("Usage: %s\n\n%s\n\nOptions:\n", command->usage, command->help);
        options_print(rows, n);
        return 1;
    }
    if (r < 0)
        return r;
    r = command->takes_program ? 0 : run_args_complete(&args->run, err);
    return r < 0 ? r : check_words(command, args, err);
}
