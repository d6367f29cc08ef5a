/* cmd_run.h - what other commands that run a program share with `carrel run`. */
#pragma once

struct carrel_error;
struct run_args;

/* Runs the program and reports as the options say. Returns the exit status. */
int run_program(struct run_args *args);

/* For a command line that was not understood: says so, also in JSON if one word asks for it. */
int run_refuse(struct run_args *args, int argc, char **argv, const struct carrel_error *err);
