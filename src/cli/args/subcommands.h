/* subcommands.h - commands that are a table of subcommands: image, journal, policy, runs and
 * workspace. */
#pragma once
#include "cli/args/options.h"

/* What every subcommand has; first in the struct with the options of its command. */
struct subcommand_args {
    char **words; /* those that are no options, in their order; NULL behind the last */
    size_t n_words;
    bool is_json;
    bool wants_help;
};

#define OPTION_BIT(index) (1U << (index))

struct subcommand {
    const char *name;
    const char *words; /* what --help calls its words: "" or "RUN|FILE" */
    const char *help;  /* one line, from a small letter on, without the full stop */
    const char *more;  /* further lines of its own --help; NULL: none */
    size_t min, max;   /* number of words */
    unsigned options;  /* OPTION_BIT(i): takes rows[i] of its command; --json and --help are
                          implied */
    int (*run)(const struct subcommand_args *args);
    int (*run_program)(int argc, char **argv); /* instead: takes the options of carrel run */
};

struct subcommands {
    const char *command; /* "journal" */
    const char *help;    /* usage and what the command is for */
    const char *end;     /* last lines of --help; NULL: none */
    const struct subcommand *list;
    size_t n;
    const struct option_row *rows; /* options of the command's own struct */
    size_t n_rows;                 /* at most 30 */
    bool has_default;              /* without a subcommand the first one is run */
};

/*
 * Runs the subcommand that argv[1] names, with its options in `args` and those behind it.
 * Returns the exit status.
 */
int subcommands_run(
        const struct subcommands *set, int argc, char **argv, struct subcommand_args *args);

/* Parses the command line of one subcommand; args->words is the caller's to free. */
int subcommand_parse(const struct subcommands *set, const struct subcommand *sub, int argc,
        char **argv, struct subcommand_args *args, struct carrel_error *err);
