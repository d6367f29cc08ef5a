/* run.h - what other commands that run a program share with `carrel run`. */
#pragma once

struct carrel_error;
struct carrel_run_options;
struct carrel_run_result;
struct run_args;

/* Runs the program and reports as the options say. Returns the exit status. */
int run_program(struct run_args *args);

/* The same with another verb than carrel_run(). */
typedef int run_verb(void *context, const struct carrel_run_options *options,
        struct carrel_run_result **out, struct carrel_error *err);
int run_program_by(struct run_args *args, run_verb *verb, void *context);

/* Says on standard error what should be known of a sandbox; nothing for "", or with --quiet. */
void program_print_note(const struct run_args *args, const char *note);

/* Reports a failure as the options say, before there was a run. Returns the exit status. */
int program_fail(const struct run_args *args, const struct carrel_error *err);

/* For a command line that was not understood: says so, also in JSON if one word asks for it. */
int program_refuse(
        struct run_args *args, int argc, char **argv, const struct carrel_error *err);
