/* tar.c - carrel export and import: files of a sandbox as a tar. */
#include "base/auto.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/json.h"
#include "cli/args/files_args.h"
#include "cli/commands.h"
#include "cli/print/report.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

static void note(uint64_t n, const char *what)
{
    if (n > 0)
        (void)fprintf(stderr, "carrel: left out: %" PRIu64 " %s\n", n, what);
}

static void note_all(const struct carrel_files_count *count)
{
    note(count->skipped, "neither file, directory nor link");
    note(count->stray_links, "links that lead out of the directory");
}

/* --- export --- */

static int run_export(const struct files_args *args, char **words, int n)
{
    struct carrel_error err = { 0 };
    struct carrel_files_count count = CARREL_FILES_COUNT_INIT;
    struct carrel_sandbox *sandbox = NULL;
    const char *path = NULL;

    (void)n;
    int r = isatty(STDOUT_FILENO)
                    ? err_set(&err, -EINVAL, "an archive is not for a terminal; use '>FILE'")
                    : files_open(words[0], &sandbox, &path, &err);
    if (r == 0)
        r = carrel_files_export(sandbox, path, STDOUT_FILENO, &args->options, &count, &err);
    carrel_sandbox_free(sandbox);
    if (r < 0)
        return report_error(STATUS_FAILED, &err);
    note_all(&count);
    return 0;
}

int cmd_export(int argc, char **argv)
{
    static const struct option_row rows[] = { FILES_ENTRIES, FILES_BYTES, FILES_USER,
        FILES_HELP };
    static const struct files_command command = {
        .name = "export",
        .words = "SANDBOX:PATH",
        .help = "Writes the contents of a directory of a sandbox to standard output, as a tar\n"
                "archive: files, directories, and links that stay inside the directory; no "
                "owners\n"
                "or set-uid bits. If a file changes while it is read, the command fails and "
                "the\n"
                "archive is incomplete.",
        .rows = rows,
        .n_rows = ARRAY_LEN(rows),
        .min_words = 1,
        .max_words = 1,
        .run = run_export,
    };

    return files_command_run(&command, argc, argv);
}

/* --- import --- */

static int print(const struct carrel_files_count *count)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(4096);
    struct json json = { .out = &text };

    json_object(&json, NULL);
    files_write_count(count, &json);
    json_end_object(&json);
    return report_print_json(&text, 0);
}

static int run_import(const struct files_args *args, char **words, int n)
{
    struct carrel_error err = { 0 };
    struct carrel_files_count count = CARREL_FILES_COUNT_INIT;
    struct carrel_sandbox *sandbox = NULL;
    const char *path = NULL;

    (void)n;
    int r = files_open(words[0], &sandbox, &path, &err);
    if (r == 0)
        r = carrel_files_import(sandbox, path, STDIN_FILENO, &args->options, &count, &err);
    carrel_sandbox_free(sandbox);
    if (r < 0)
        return report_fail(args->is_json, &err);
    note_all(&count);
    return args->is_json ? print(&count) : 0;
}

int cmd_import(int argc, char **argv)
{
    static const struct option_row rows[] = { FILES_ENTRIES, FILES_BYTES, FILES_USER,
        FILES_JSON, FILES_HELP };
    static const struct files_command command = {
        .name = "import",
        .words = "SANDBOX:PATH",
        .help = "Unpacks a tar archive from standard input, plain or compressed with gzip, "
                "zstd\n"
                "or xz, into a directory of a sandbox. Nothing is written outside that "
                "directory.\n"
                "Devices, FIFOs and sockets are left out.",
        .rows = rows,
        .n_rows = ARRAY_LEN(rows),
        .min_words = 1,
        .max_words = 1,
        .run = run_import,
    };

    return files_command_run(&command, argc, argv);
}
