/* run_args.h - the options of `carrel run`, as later commands will take them too. */
#pragma once
#include "cli/args/options.h"
#include "cli/args/run_policy_args.h"
#include "cli/args/run_workspace_args.h"
#include <carrel/run.h>

struct run_args {
    struct carrel_run_options options;
    char **env; /* "K=V", NULL-terminated */
    size_t n_env;
    struct carrel_mount *mounts;
    size_t workdir; /* which of them is --workdir, counted from 1; 0: none */
    struct run_workspace_args workspace;
    const char *cwd; /* as given */
    char *cwd_absolute;
    const char *shell_line; /* -c */
    char **argv;            /* built for -c */
    const char *output;     /* --output */
    bool has_stdin;
    bool is_json;
    bool is_text; /* --format text */
    bool is_quiet;
    bool is_capped; /* --max-output was given */
    bool wants_help;
};

/* Headings of --help. */
#define RUN_LIMITS "Limits"
#define RUN_FILES "Files"
#define RUN_WORKSPACE "Git workspace"
#define RUN_ISOLATION "Isolation and policy"
#define RUN_OUTPUT "Input, output and records"

extern const struct option_row run_rows[];
extern const size_t n_run_rows;

/* Reads the words of the command line. Everything is checked; nothing is done yet. */
int run_args_parse(struct run_args *args, int argc, char **argv, struct carrel_error *err);

/*
 * The same for a command that goes on in a workspace: COMMAND [options] [NAME] [options] --
 * PROGRAM. *name is NULL when "--", or nothing, comes in its place. The caller finds out which
 * workspace is meant and puts it into workspace.options.resume.
 */
int run_args_parse_resume(struct run_args *args, int argc, char **argv, const char **name,
        struct carrel_error *err);

/* For a command that has a table of its own around this one: what all options together mean. */
int run_args_complete(struct run_args *args, struct carrel_error *err);

/* The same with the words that are the program, for "usage" in messages. */
int run_args_program(struct run_args *args, int n, char **words, const char *usage,
        struct carrel_error *err);
void run_args_finish(struct run_args *args);
