/* python.c - carrel python. */
#include "base/auto.h"
#include "base/err.h"
#include "cli/args/python_args.h"
#include "cli/commands.h"
#include "cli/program.h"
#include <stdio.h>

static void print_help(void)
{
    (void)puts(
            "Usage: carrel python [options] FILE [options] [--] [ARG...]\n"
            "       carrel python [options] -c CODE [--] [ARG...]\n"
            "       carrel python [options] - [options] [--] [ARG...]    (code from stdin)\n\n"
            "Runs Python code in a new sandbox. The code reads the dict `inputs` and assigns\n"
            "its answer to `result`, which is returned as JSON.\n\n"
            "Exit status: the program's own; 1 for a syntax error, 126 for a blocked import;\n"
            "otherwise as for 'carrel run'.\n\n"
            "Options:");
    python_args_print();
}

static int execute(void *context, const struct carrel_run_options *run,
        struct carrel_run_result **out, struct carrel_error *err)
{
    struct python_args *args = context;

    args->options.run = run;
    return carrel_python(&args->options, out, err);
}

int cmd_python(int argc, char **argv)
{
    struct carrel_error err = { 0 };
    struct python_args args;
    int status = 0;

    int r = python_args_parse(&args, argc, argv, &err);
    if (args.run.wants_help) {
        print_help();
    } else if (r < 0) {
        status = program_refuse(&args.run, argc, argv, &err);
    } else {
        r = python_args_load(&args, &err);
        status = r < 0 ? program_fail(&args.run, &err) : program_run(&args.run, execute, &args);
    }
    python_args_finish(&args);
    return status;
}
