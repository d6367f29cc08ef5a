/* files_change.c - carrel write, rm, mv and mkdir: files of a sandbox, changed. */
#include "base/auto.h"
#include "base/err.h"
#include "cli/args/files_args.h"
#include "cli/commands.h"
#include "cli/print/report.h"
#include <errno.h>
#include <limits.h>
#include <unistd.h>

/* --- write --- */

static int write_one(const struct files_args *args, struct carrel_sandbox *sandbox,
        const char *path, struct carrel_error *err)
{
    return carrel_files_write(sandbox, path, STDIN_FILENO, &args->options, err);
}

static int run_write(const struct files_args *args, char **words, int n)
{
    return files_for_words(args, words, n, write_one);
}

int cmd_write(int argc, char **argv)
{
    static const struct option_row rows[] = {
        FILES_FLAG("append", "append to the file", options.is_append),
        FILES_FLAG("no-replace", "fail if the file exists", options.no_replace),
        { "mode", "MODE", "permissions of a new file (default: 644)", .take = files_take_mode },
        FILES_USER,
        FILES_HELP,
    };
    static const struct files_command command = {
        .name = "write",
        .words = "SANDBOX:PATH",
        .help = "Writes standard input to a file of a sandbox, replacing its contents.",
        .rows = rows,
        .n_rows = ARRAY_LEN(rows),
        .min_words = 1,
        .max_words = 1,
        .run = run_write,
    };

    return files_command_run(&command, argc, argv);
}

/* --- rm --- */

static int remove_one(const struct files_args *args, struct carrel_sandbox *sandbox,
        const char *path, struct carrel_error *err)
{
    int r = carrel_files_remove(sandbox, path, &args->options, err);

    return r == -ENOENT && args->is_forced ? 0 : r;
}

static int run_rm(const struct files_args *args, char **words, int n)
{
    return files_for_words(args, words, n, remove_one);
}

int cmd_rm(int argc, char **argv)
{
    static const struct option_row rows[] = {
        FILES_FLAG("r", "remove directories and their contents", options.is_recursive),
        FILES_FLAG("f", "ignore files that do not exist", is_forced),
        FILES_USER,
        FILES_HELP,
    };
    static const struct files_command command = {
        .name = "rm",
        .words = "SANDBOX:PATH...",
        .help = "Removes files, links and empty directories of a sandbox. Symbolic links are "
                "not\n"
                "followed.",
        .rows = rows,
        .n_rows = ARRAY_LEN(rows),
        .min_words = 1,
        .max_words = INT_MAX,
        .run = run_rm,
    };

    return files_command_run(&command, argc, argv);
}

/* --- mkdir --- */

static int make_one(const struct files_args *args, struct carrel_sandbox *sandbox,
        const char *path, struct carrel_error *err)
{
    return carrel_files_make_dir(sandbox, path, &args->options, err);
}

static int run_mkdir(const struct files_args *args, char **words, int n)
{
    return files_for_words(args, words, n, make_one);
}

int cmd_mkdir(int argc, char **argv)
{
    static const struct option_row rows[] = {
        FILES_FLAG(
                "p", "make missing parents; ignore existing directories", options.with_parents),
        { "mode", "MODE", "permissions (default: 755)", .take = files_take_mode },
        FILES_USER,
        FILES_HELP,
    };
    static const struct files_command command = {
        .name = "mkdir",
        .words = "SANDBOX:PATH...",
        .help = "Makes directories in a sandbox.",
        .rows = rows,
        .n_rows = ARRAY_LEN(rows),
        .min_words = 1,
        .max_words = INT_MAX,
        .run = run_mkdir,
    };

    return files_command_run(&command, argc, argv);
}

/* --- mv --- */

static int run_mv(const struct files_args *args, char **words, int n)
{
    struct carrel_error err = { 0 };
    struct carrel_sandbox *sandbox = NULL;
    struct file_ref from;
    struct file_ref to;
    const char *path = NULL;

    (void)n;
    int r = file_ref_inside(words[0], &from, &err);
    if (r == 0)
        r = file_ref_inside(words[1], &to, &err);
    if (r == 0 && strcmp(from.id, to.id) != 0)
        r = err_set(&err, -EXDEV,
                "the paths are in different sandboxes; 'carrel cp' copies between them");
    if (r == 0)
        r = files_open(words[0], &sandbox, &path, &err);
    if (r == 0)
        r = carrel_files_move(sandbox, path, to.path, &args->options, &err);
    carrel_sandbox_free(sandbox);
    return r < 0 ? report_error(STATUS_FAILED, &err) : 0;
}

int cmd_mv(int argc, char **argv)
{
    static const struct option_row rows[] = {
        FILES_FLAG("no-replace", "fail if TO exists", options.no_replace),
        FILES_USER,
        FILES_HELP,
    };
    static const struct files_command command = {
        .name = "mv",
        .words = "SANDBOX:FROM SANDBOX:TO",
        .help = "Renames a file or directory of a sandbox, or moves it into the directory TO.",
        .rows = rows,
        .n_rows = ARRAY_LEN(rows),
        .min_words = 2,
        .max_words = 2,
        .run = run_mv,
    };

    return files_command_run(&command, argc, argv);
}
