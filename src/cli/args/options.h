/* options.h - command line options as a table. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

struct carrel_error;

struct option_row {
    const char *name;     /* without the dashes; one letter: a short option */
    const char *argument; /* what --help calls it; NULL: it takes no value */
    const char *help;     /* one sentence; --help wraps it */
    const char *group;    /* heading in a long --help; NULL: that of the first group */
    /* Takes the value (NULL if there is none) into the command's own struct. */
    int (*take)(void *target, const char *value, struct carrel_error *err);
    size_t flag; /* without `take`: where in that struct the bool is that becomes true */
};

/* The row of an option that only sets a bool; does not compile for a member of another type. */
#define OPTION_FLAG(name, help, type, member)                                                  \
    {                                                                                          \
        name, NULL, help, NULL, NULL, OPTION_MEMBER(type, member)                              \
    }

#define OPTION_MEMBER(type, member)                                                            \
    _Generic(((type *)NULL)->member, bool : offsetof(type, member))

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

/* Whether a word of the command line asks for JSON, also one behind a word that was refused. */
bool options_ask_json(int argc, char *const *argv);

/*
 * Prints the table for --help, at most 80 columns wide. A long table is printed group by group,
 * each under its heading; the caller has printed that of the first group ("Options:").
 */
void options_print(const struct option_row *rows, size_t n);
