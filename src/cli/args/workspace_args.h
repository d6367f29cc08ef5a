/* workspace_args.h - the options of `carrel workspace`; each subcommand takes some of them. */
#pragma once
#include "cli/args/options.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct carrel_error;

enum workspace_option {
    OPTION_ALL,
    OPTION_STAT,
    OPTION_NAME_STATUS,
    OPTION_UNCOMMITTED,
    OPTION_COLOR,
    OPTION_MESSAGE,
    OPTION_M, /* -m */
    OPTION_SQUASH,
    OPTION_MERGE,
    OPTION_FORCE,
    OPTION_OLDER_THAN,
    OPTION_DRY_RUN,
    OPTION_AT,
    OPTION_REPO,
    OPTION_REASON,
    OPTION_JSON,
    OPTION_HELP,
    OPTION_COUNT, /* their number */
};
#define OPTION_BIT(option) (1U << (option))

enum color_choice { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };

struct workspace_args {
    char **words; /* names and the like, in their order; they belong to the command line */
    size_t n_words;
    bool is_all;
    bool is_stat;
    bool is_names;
    bool is_uncommitted;
    bool is_squash;
    bool is_merge;
    bool is_forced;
    bool is_dry_run;
    bool is_json;
    bool wants_help;
    enum color_choice color;
    const char *message;
    const char *at;
    const char *repo;
    const char *reason;
    uint64_t older_than_s;
};

extern const struct option_row workspace_rows[OPTION_COUNT];

/*
 * Reads argv[1] and what follows: options of the set `options` and words, mixed as people type
 * them; after "--" there are words only.
 */
int workspace_args_parse(struct workspace_args *args, unsigned options, int argc, char **argv,
        struct carrel_error *err);
void workspace_args_finish(struct workspace_args *args);

/* The rows of a set as --help shows them. */
void workspace_args_print(unsigned options);

/* Whether output to standard output is to be coloured. */
bool workspace_args_has_color(const struct workspace_args *args);
