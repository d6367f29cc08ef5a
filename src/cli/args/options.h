/* options.h - command line options as a table. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

struct carrel_error;

struct option_row {
    const char *name;     /* without the dashes; one letter: a short option */
    const char *argument; /* what --help calls it; NULL: it takes no value */
    const char *help;
    /* Takes the value (NULL if there is none) into the command's own struct. */
    int (*take)(void *target, const char *value, struct carrel_error *err);
    size_t flag; /* without `take`: where in that struct the bool is that becomes true */
};

/* The row of an option that only sets a bool; does not compile for a member of another type. */
#define OPTION_FLAG(name, help, type, member)                                                  \
    {                                                                                          \
        name, NULL, help, NULL,                                                                \
                _Generic(((type *)NULL)->member, bool                                          \
                         : offsetof(type, member))                                             \
    }

/*
 * Reads options from argv[1] on, up to the first word that is not one, or past "--". Returns
 * the index of that word. Errors name the option and what was expected.
 */
int options_parse(const struct option_row *rows, size_t n, int argc, char *const *argv,
        void *target, struct carrel_error *err);

/*
 * The same with words between the options, as people type them; after "--" there are words
 * only. `words` has room for argc of them. Returns how many there are.
 */
int options_parse_mixed(const struct option_row *rows, size_t n, int argc, char **argv,
        void *target, char **words, struct carrel_error *err);

/* The table as --help shows it. */
void options_print(const struct option_row *rows, size_t n);
