/* subcommands.c - finds, parses, explains and runs a subcommand. */
#include "cli/args/subcommands.h"
#include "base/err.h"
#include "base/str.h"
#include "base/suggest.h"
#include "cli/args/report_args.h"
#include "cli/commands.h"
#include "cli/print/report.h"
#include <errno.h>
#include <stdint.h>
#include <string.h>

static int unknown(const struct subcommands *set, const char *word, bool is_json)
{
    struct carrel_error err = { 0 };
    const char *best = NULL;
    size_t distance = SIZE_MAX;
    char shown[64];

    for (size_t i = 0; i < set->n; i++)
        suggest_offer(set->name(i), word, strlen(word), &best, &distance);
    (void)str_escape(word, strlen(word), shown, sizeof(shown));
    if (best)
        (void)err_set(&err, -EINVAL, "unknown subcommand '%s' (did you mean '%s %s'?)", shown,
                set->command, best);
    else
        (void)err_set(&err, -EINVAL, "unknown subcommand '%s'; 'carrel %s --help' lists them",
                shown, set->command);
    return report_fail(is_json, &err);
}

static bool asks_for_json(int argc, char **argv)
{
    for (int i = 2; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--json") == 0)
            return true;
    return false;
}

int subcommands_run(const struct subcommands *set, int argc, char **argv)
{
    struct carrel_error err = { 0 };

    if (argc < 2) {
        (void)err_set(&err, -EINVAL, "no subcommand; try 'carrel %s %s', or 'carrel %s --help'",
                set->command, set->first, set->command);
        return report_error(STATUS_FAILED, &err);
    }
    if (strcmp(argv[1], "--help") == 0) {
        set->print_help();
        return report_finish(0);
    }
    for (size_t i = 0; i < set->n; i++)
        if (strcmp(set->name(i), argv[1]) == 0)
            return set->run(i, argc - 1, argv + 1);
    return unknown(set, argv[1], asks_for_json(argc, argv));
}

int subcommand_check_words(const char *command, const char *name, struct subcommand_words takes,
        char *const *words, size_t n, struct carrel_error *err)
{
    char shown[64];

    if (n > takes.max)
        return err_set(err, -EINVAL, "unexpected word '%s'; usage: carrel %s %s [options]%s%s",
                str_escape(words[takes.max], strlen(words[takes.max]), shown, sizeof(shown)),
                command, name, takes.text[0] ? " " : "", takes.text);
    if (n < takes.min)
        return err_set(err, -EINVAL, "a word is missing; usage: carrel %s %s [options] %s",
                command, name, takes.text);
    return 0;
}
