/* sandbox_args.h - command lines about living sandboxes: COMMAND ID [WORD...] [options]. */
#pragma once
#include "base/auto.h"
#include "cli/args/options.h"
#include "cli/args/run_args.h"
#include <carrel/sandbox.h>
#include <stdbool.h>
#include <stdint.h>

DEFINE_AUTO(struct carrel_sandbox *, carrel_sandbox_free)

/* What these commands take besides the options of `carrel run`. */
struct sandbox_args {
    struct run_args run; /* first: its rows take it for their own */
    const char *name;
    const char *from;
    char **labels; /* "K=V", NULL-terminated */
    size_t n_labels;
    uint64_t lease_ms;
    uint64_t idle_ms;
    bool has_lease;
    bool has_idle;
    bool is_detached;
    bool is_all;
    bool is_force;
    struct carrel_limits limits;
    char **words; /* those that are no options */
    size_t n_words;
};
void sandbox_args_finish(struct sandbox_args *args);

/* A command: its own rows and those of `carrel run` that it shares, by name. */
struct sandbox_command {
    const char *usage; /* "carrel ps ID [options]" */
    const char *help;
    const struct option_row *rows;
    size_t n_rows;
    const char *const *shared;  /* NULL-terminated; NULL: none */
    const char *const *without; /* the other way round: all but these; NULL: none of it */
    size_t min_words, max_words;
    bool takes_program; /* what follows ID, or "--", is a program with its arguments */
};

/*
 * Reads the command line. Returns 0 to go on, 1 when --help was answered, or a negative errno
 * with what is wrong.
 */
int sandbox_args_parse(struct sandbox_args *args, const struct sandbox_command *command,
        int argc, char **argv, struct carrel_error *err);

int sandbox_take_name(void *target, const char *value, struct carrel_error *err);
int sandbox_take_from(void *target, const char *value, struct carrel_error *err);
int sandbox_take_label(void *target, const char *value, struct carrel_error *err);
int sandbox_take_lease(void *target, const char *value, struct carrel_error *err);
int sandbox_take_idle(void *target, const char *value, struct carrel_error *err);
