/* program.h - runs one program for a command and reports its result: run, python, exec, attach.
 */
#pragma once
#include <stddef.h>

struct carrel_error;
struct carrel_run_options;
struct carrel_run_result;
struct run_args;

/* What runs the program: like carrel_run(), with `context` first. */
typedef int program_runner(void *context, const struct carrel_run_options *options,
        struct carrel_run_result **out, struct carrel_error *err);

/*
 * Runs the program with this process's signals, terminal and streams, and prints the result in
 * the form that the options ask for. `runner` NULL: carrel_run(). Returns the exit status.
 */
int program_run(struct run_args *args, program_runner *runner, void *context);

/* Prints a note about a sandbox on standard error; nothing for "", or with --quiet. */
void program_print_note(const struct run_args *args, const char *note);

/* Reports an error that came before the program ran, in the form that the options ask for. */
int program_fail(const struct run_args *args, const struct carrel_error *err);

/*
 * Reports a command line that could not be parsed: in JSON if any word of it asks for JSON,
 * also one after the word that was refused. Returns 125.
 */
int program_refuse(
        struct run_args *args, int argc, char **argv, const struct carrel_error *err);

/* Path of carrel's executable; NULL if it was replaced meanwhile or cannot be reached. */
const char *own_program(char *path, size_t size);
