/* options.h - command line options as a table. */
#pragma once
#include <stddef.h>

struct carrel_error;

struct option_row {
    const char *name;     /* without the dashes; one letter: a short option */
    const char *argument; /* what --help calls it; NULL: a flag */
    const char *help;
    /* Takes the value (NULL for a flag) into the command's own struct. */
    int (*take)(void *target, const char *value, struct carrel_error *err);
};

/*
 * Reads options from argv[1] on, up to the first word that is not one, or past "--". Returns
 * the index of that word. Errors name the option and what was expected.
 */
int options_parse(const struct option_row *rows, size_t n, int argc, char *const *argv,
        void *target, struct carrel_error *err);

/* The table as --help shows it. */
void options_print(const struct option_row *rows, size_t n);
