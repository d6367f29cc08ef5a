/* run_policy_args.h - under which policy a run is, and what is kept of it. */
#pragma once
#include "cli/args/options.h"

int run_take_policy(void *target, const char *value, struct carrel_error *err);
int run_take_profile(void *target, const char *value, struct carrel_error *err);
int run_take_journal(void *target, const char *value, struct carrel_error *err);
int run_take_store_code(void *target, const char *value, struct carrel_error *err);

/* Rows of the table of `carrel run`. */
#define RUN_POLICY_ROWS                                                                        \
    { .name = "policy",                                                                        \
        .argument = "FILE",                                                                    \
        .help = "policy file, or none: built-in defaults",                                     \
        .group = RUN_ISOLATION,                                                                \
        .take = run_take_policy },                                                             \
            { .name = "profile",                                                               \
                .argument = "NAME",                                                            \
                .help = "profile of that policy",                                              \
                .group = RUN_ISOLATION,                                                        \
                .take = run_take_profile },                                                    \
            { .name = "journal",                                                               \
                .argument = "on|off",                                                          \
                .help = "record the run in the journal (default: on)",                         \
                .group = RUN_OUTPUT,                                                           \
                .take = run_take_journal },                                                    \
    {                                                                                          \
        .name = "store-code", .argument = "never|on_error|always",                             \
        .help = "when to keep code, result and output (default: on_error)",                    \
        .group = RUN_OUTPUT, .take = run_take_store_code                                       \
    }
