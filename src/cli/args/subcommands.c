/* subcommands.c - finds, parses, explains and runs a subcommand. */
#include "cli/args/subcommands.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/str.h"
#include "base/suggest.h"
#include "cli/print/report.h"
#include <errno.h>
#include <stdint.h>
#include <stdio.h>

#define OWN_MAX 30

static const struct option_row common[] = {
    OPTION_FLAG("json", "print JSON and nothing else", struct subcommand_args, is_json),
    OPTION_FLAG("help", "print this text", struct subcommand_args, wants_help),
};

/* The rows of a set of bits, then the common ones. */
static size_t select_rows(const struct subcommands *set, unsigned options,
        struct option_row rows[static OWN_MAX + ARRAY_LEN(common)])
{
    size_t n = 0;

    for (size_t i = 0; i < set->n_rows; i++)
        if (options & OPTION_BIT(i))
            rows[n++] = set->rows[i];
    for (size_t i = 0; i < ARRAY_LEN(common); i++)
        rows[n++] = common[i];
    return n;
}

static void print_options(const struct subcommands *set, unsigned options)
{
    struct option_row rows[OWN_MAX + ARRAY_LEN(common)];

    options_print(rows, select_rows(set, options, rows));
}

static int print_help(const struct subcommands *set)
{
    printf("%s\n\nSubcommands:\n", set->help);
    for (size_t i = 0; i < set->n; i++)
        printf("  %-12s %s\n", set->list[i].name, set->list[i].help);
    printf("\nOptions ('carrel %s SUBCOMMAND --help' says which apply):\n", set->command);
    print_options(set, ~0U);
    if (set->end)
        printf("\n%s\n", set->end);
    return report_finish(0);
}

static int print_own_help(const struct subcommands *set, const struct subcommand *sub)
{
    printf("Usage: carrel %s %s [options]%s%s\n\n%c%s.\n%s%s\nOptions:\n", set->command,
            sub->name, sub->words[0] ? " " : "", sub->words, sub->help[0] - 'a' + 'A',
            sub->help + 1, sub->more ? sub->more : "", sub->more ? "\n" : "");
    print_options(set, sub->options);
    return report_finish(0);
}

static int check_words(const struct subcommands *set, const struct subcommand *sub,
        const struct subcommand_args *args, struct carrel_error *err)
{
    char shown[64];

    if (args->n_words > sub->max) {
        const char *extra = args->words[sub->max];
        return err_set(err, -EINVAL,
                "unexpected argument '%s'; usage: carrel %s %s [options]%s%s",
                str_escape(extra, strlen(extra), shown, sizeof(shown)), set->command, sub->name,
                sub->words[0] ? " " : "", sub->words);
    }
    if (args->n_words < sub->min)
        return err_set(err, -EINVAL, "missing argument; usage: carrel %s %s [options] %s",
                set->command, sub->name, sub->words);
    return 0;
}

int subcommand_parse(const struct subcommands *set, const struct subcommand *sub, int argc,
        char **argv, struct subcommand_args *args, struct carrel_error *err)
{
    struct option_row rows[OWN_MAX + ARRAY_LEN(common)];

    args->words = calloc((size_t)argc + 2, sizeof(*args->words));
    if (!args->words)
        return err_set_errno(err, -ENOMEM, "arguments");
    int n = options_parse_mixed(
            rows, select_rows(set, sub->options, rows), argc, argv, args, args->words, err);
    if (n < 0)
        return n;
    args->n_words = (size_t)n;
    return args->wants_help ? 0 : check_words(set, sub, args, err);
}

static int run_one(const struct subcommands *set, const struct subcommand *sub, int argc,
        char **argv, struct subcommand_args *args)
{
    struct carrel_error err = { 0 };

    if (sub->run_program)
        return sub->run_program(argc, argv);
    int r = subcommand_parse(set, sub, argc, argv, args, &err);
    int status = r < 0              ? report_fail(options_ask_json(argc, argv), &err)
                 : args->wants_help ? print_own_help(set, sub)
                                    : sub->run(args);
    free(args->words);
    return status;
}

static int unknown(const struct subcommands *set, int argc, char **argv)
{
    struct carrel_error err = { 0 };
    const char *word = argv[1];
    const char *best = NULL;
    size_t distance = SIZE_MAX;
    char shown[64];

    for (size_t i = 0; i < set->n; i++)
        suggest_offer(set->list[i].name, word, strlen(word), &best, &distance);
    (void)str_escape(word, strlen(word), shown, sizeof(shown));
    if (best)
        (void)err_set(&err, -EINVAL, "unknown subcommand '%s' (did you mean '%s %s'?)", shown,
                set->command, best);
    else
        (void)err_set(&err, -EINVAL, "unknown subcommand '%s'; 'carrel %s --help' lists them",
                shown, set->command);
    return report_fail(options_ask_json(argc, argv), &err);
}

int subcommands_run(
        const struct subcommands *set, int argc, char **argv, struct subcommand_args *args)
{
    struct carrel_error err = { 0 };

    if (argc > 1 && strcmp(argv[1], "--help") == 0)
        return print_help(set);
    if (set->has_default && (argc < 2 || argv[1][0] == '-'))
        return run_one(set, &set->list[0], argc, argv, args);
    if (argc < 2) {
        (void)err_set(&err, -EINVAL, "no subcommand; try 'carrel %s %s', or 'carrel %s --help'",
                set->command, set->list[0].name, set->command);
        return report_error(STATUS_FAILED, &err);
    }
    for (size_t i = 0; i < set->n; i++)
        if (strcmp(set->list[i].name, argv[1]) == 0)
            return run_one(set, &set->list[i], argc - 1, argv + 1, args);
    return unknown(set, argc, argv);
}
