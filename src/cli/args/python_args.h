/* python_args.h - the options of `carrel python`: those of `carrel run`, and its own. */
#pragma once
#include "base/buf.h"
#include "cli/args/run_args.h"
#include <carrel/python.h>

struct python_args {
    struct run_args run; /* first: the rows of `carrel run` take this for theirs */
    struct carrel_python_options options;
    const char *code; /* -c */
    const char *file; /* "-": standard input */
    const char *inputs;
    char **block; /* behind options.block_imports */
    size_t n_block;
    char **allow;
    size_t n_allow;
    struct buf code_text;
    struct buf inputs_text;
};

/* Reads the words of the command line. Everything is checked; nothing is read yet. */
int python_args_parse(
        struct python_args *args, int argc, char **argv, struct carrel_error *err);

/* Reads the code and the inputs. -ENOENT, -EACCES, -EISDIR speak of the file with the code. */
int python_args_load(struct python_args *args, struct carrel_error *err);

void python_args_print(void); /* the options, as --help shows them */
void python_args_finish(struct python_args *args);
