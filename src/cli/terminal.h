/* terminal.h - the caller's terminal while a program has one of its own. */
#pragma once
#include <stdbool.h>
#include <termios.h>

struct carrel_run_options;

struct terminal {
    bool is_raw;
    struct termios saved;
};

/* Takes over the window size; makes the terminal raw when input is passed on from it. */
void terminal_begin(struct terminal *terminal, struct carrel_run_options *options);
void terminal_end(struct terminal *terminal);
