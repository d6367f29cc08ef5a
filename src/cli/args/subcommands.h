/* subcommands.h - commands that are a table of subcommands: image, journal, policy, runs and
 * workspace. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

struct carrel_error;

struct subcommands {
    const char *command; /* "journal" */
    const char *first;   /* what to try when none was given: "list" */
    size_t n;
    const char *(*name)(size_t index);
    void (*print_help)(void);
    int (*run)(size_t index, int argc, char **argv); /* argv[0] is its name */
};

/* Finds the one that argv[1] names and runs it. Returns the exit status. */
int subcommands_run(const struct subcommands *set, int argc, char **argv);

/* What a subcommand calls the words it takes, and how many there may be. */
struct subcommand_words {
    const char *text; /* "" or "RUN|FILE" */
    size_t min, max;
};

/* Refuses a word too many or too few, with the usage. */
int subcommand_check_words(const char *command, const char *name, struct subcommand_words takes,
        char *const *words, size_t n, struct carrel_error *err);
