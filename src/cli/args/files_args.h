/* files_args.h - what the commands on files of a sandbox have in common: cp, ls, rm ... */
#pragma once
#include "cli/args/file_ref.h"
#include "cli/args/options.h"
#include <carrel/files.h>

struct files_args {
    bool wants_help, is_json, is_forced, is_long;
    uint64_t count; /* 0: no limit */
    struct carrel_files_options options;
};

/* Rows that several of them have. */
int files_take_mode(void *target, const char *value, struct carrel_error *err);
int files_take_user(void *target, const char *value, struct carrel_error *err);
int files_take_entries(void *target, const char *value, struct carrel_error *err);
int files_take_bytes(void *target, const char *value, struct carrel_error *err);
int files_take_count(void *target, const char *value, struct carrel_error *err);

#define FILES_FLAG(name, help, member) OPTION_FLAG(name, help, struct files_args, member)
#define FILES_JSON FILES_FLAG("json", "print JSON and nothing else", is_json)
#define FILES_HELP FILES_FLAG("help", "print this text", wants_help)
#define FILES_USER                                                                             \
    {                                                                                          \
        "user", "UID[:GID]", "act as this user of the sandbox", .take = files_take_user        \
    }
#define FILES_ENTRIES                                                                          \
    {                                                                                          \
        "max-entries", "N", "most files and directories (default: 1048576)",                   \
                .take = files_take_entries                                                     \
    }
#define FILES_BYTES                                                                            \
    {                                                                                          \
        "max-bytes", "SIZE", "most data (default: 256G)", .take = files_take_bytes             \
    }

struct files_command {
    const char *name;
    const char *words; /* what --help calls them: "SANDBOX:PATH..." */
    const char *help;
    const struct option_row *rows;
    size_t n_rows;
    int min_words, max_words;
    /* Returns the exit status. */
    int (*run)(const struct files_args *args, char **words, int n);
};

/* Reads the command line and runs it. Returns the exit status. */
int files_command_run(const struct files_command *command, int argc, char **argv);

/* The sandbox in `word`, which the caller frees, and the path in it. */
int files_open(const char *word, struct carrel_sandbox **sandbox, const char **path,
        struct carrel_error *err);

/* Does the same for each word, even after a failure. Returns the exit status. */
typedef int files_verb(const struct files_args *args, struct carrel_sandbox *sandbox,
        const char *path, struct carrel_error *err);
int files_for_words(const struct files_args *args, char **words, int n, files_verb *verb);

/* What was copied, as members of an object. */
struct json;
void files_write_count(const struct carrel_files_count *count, struct json *json);
