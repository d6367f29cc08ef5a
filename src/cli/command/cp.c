/* cp.c - carrel cp: files and directories, between the host and sandboxes. */
#include "base/auto.h"
#include "base/err.h"
#include "base/json.h"
#include "cli/args/files_args.h"
#include "cli/commands.h"
#include "cli/print/report.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

static const char help[] =
        "Copies files and directories between the host and a sandbox, or between two\n"
        "sandboxes (SANDBOX:PATH). A directory is copied with its contents; DIR/. means\n"
        "only the contents. If TARGET is a directory the copy goes into it. '-' is\n"
        "standard input or output, for one file.\n\n"
        "Permissions and times are kept, owners and set-uid bits are not. On the host no\n"
        "link is followed, and links that lead out of the copied directory are left out.";

static const struct option_row rows[] = {
    FILES_ENTRIES,
    FILES_BYTES,
    FILES_USER,
    FILES_JSON,
    FILES_HELP,
};

/* One of the two words. */
struct end {
    struct file_ref ref;
    struct carrel_sandbox *sandbox; /* NULL: on the host */
    bool is_stream;
};

static int open_end(const char *word, struct end *end, struct carrel_error *err)
{
    *end = (struct end){ .is_stream = strcmp(word, "-") == 0 };
    int r = file_ref_parse(word, &end->ref, err);
    if (r < 0 || !end->ref.id[0])
        return r;
    return carrel_sandbox_open(end->ref.id, &end->sandbox, err);
}

static void note(uint64_t n, const char *one, const char *many)
{
    if (n > 0)
        (void)fprintf(stderr, "carrel: left out %" PRIu64 " %s\n", n, n == 1 ? one : many);
}

static int print(const struct carrel_files_count *count)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(4096);
    struct json json = { .out = &text };

    json_object(&json, NULL);
    files_write_count(count, &json);
    json_u64(&json, "stray_links", count->stray_links);
    json_end_object(&json);
    return report_print_json(&text, 0);
}

static int copy_to_stdout(
        const struct end *from, const struct files_args *args, struct carrel_error *err)
{
    struct carrel_files_options options = args->options;

    options.is_whole = true;
    options.max_entries = 0; /* there is one */
    return carrel_files_read(from->sandbox, from->ref.path, STDOUT_FILENO, &options, err);
}

static int copy(struct end *from, struct end *to, const struct files_args *args,
        struct carrel_files_count *count, struct carrel_error *err)
{
    if (!from->sandbox && !to->sandbox)
        return err_set(err, -EINVAL,
                "neither path is in a sandbox; expected SANDBOX:PATH for one of them");
    if (from->is_stream)
        return carrel_files_copy_stream(
                to->sandbox, to->ref.path, STDIN_FILENO, &args->options, count, err);
    if (to->is_stream)
        return copy_to_stdout(from, args, err);
    return carrel_files_copy(from->sandbox, from->ref.path, to->sandbox, to->ref.path,
            &args->options, count, err);
}

static int run(const struct files_args *args, char **words, int n)
{
    struct carrel_error err = { 0 };
    struct carrel_files_count count = CARREL_FILES_COUNT_INIT;
    struct end from;
    struct end to;

    (void)n;
    int r = open_end(words[0], &from, &err);
    if (r < 0)
        return report_fail(args->is_json, &err);
    r = open_end(words[1], &to, &err);
    if (r == 0)
        r = copy(&from, &to, args, &count, &err);
    carrel_sandbox_free(from.sandbox);
    carrel_sandbox_free(to.sandbox);
    if (r < 0)
        return report_fail(args->is_json && !to.is_stream, &err);
    note(count.skipped, "entry that is neither file, directory nor link",
            "entries that are neither files, directories nor links");
    note(count.stray_links, "link that leads out of the directory",
            "links that lead out of the directory");
    return args->is_json && !to.is_stream ? print(&count) : 0;
}

int cmd_cp(int argc, char **argv)
{
    static const struct files_command command = {
        .name = "cp",
        .words = "SOURCE TARGET",
        .help = help,
        .rows = rows,
        .n_rows = ARRAY_LEN(rows),
        .min_words = 2,
        .max_words = 2,
        .run = run,
    };

    return files_command_run(&command, argc, argv);
}
