/* run.c - carrel run. */
#include "base/err.h"
#include "cli/args/run_args.h"
#include "cli/commands.h"
#include "cli/program.h"
#include <stdio.h>

static void print_help(void)
{
    (void)puts(
            "Usage: carrel run [options] [--] PROGRAM [ARG...]\n"
            "       carrel run [options] -c 'SHELL LINE' [ARG...]\n\n"
            "Runs a program in a new sandbox and passes its output on. When the program ends,\n"
            "everything it started ends too. It sees the host's programs read-only, and none\n"
            "of the caller's files, variables, network or processes unless options add "
            "them.\n\n"
            "Exit status: the program's own; 124 timeout, 125 carrel failed or refused,\n"
            "126 cannot execute, 127 not found, 128+N ended by signal N.\n\n"
            "Options:");
    options_print(run_rows, n_run_rows);
}

int cmd_run(int argc, char **argv)
{
    struct carrel_error err = { 0 };
    struct run_args args;
    int status = 0;

    int r = run_args_parse(&args, argc, argv, &err);
    if (args.wants_help) {
        print_help();
    } else if (r < 0) {
        status = program_refuse(&args, argc, argv, &err);
    } else {
        status = program_run(&args, NULL, NULL);
    }
    run_args_finish(&args);
    return status;
}
