/* files_args.c - options and words of the commands on files. */
#include "cli/args/files_args.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/json.h"
#include "base/str.h"
#include "cli/args/user_word.h"
#include "cli/print/report.h"
#include <errno.h>
#include <stdio.h>

static struct files_args *args_of(void *target)
{
    return target;
}

int files_take_mode(void *t, const char *v, struct carrel_error *err)
{
    char shown[64];
    mode_t mode = 0;
    size_t n = 0;

    for (; v[n] >= '0' && v[n] <= '7' && n < 5; n++)
        mode = mode * 8 + (mode_t)(v[n] - '0');
    if (n == 0 || v[n] || mode > 0777)
        return err_set(err, -EINVAL, "'%s' is not a mode; expected one such as 644",
                str_escape(v, strlen(v), shown, sizeof(shown)));
    args_of(t)->options.mode = mode;
    args_of(t)->options.has_mode = true;
    return 0;
}

int files_take_user(void *t, const char *v, struct carrel_error *err)
{
    struct carrel_files_options *options = &args_of(t)->options;

    options->has_user = true;
    return user_word_parse(v, &options->uid, &options->gid, err);
}

static int take_number(const char *v, uint64_t *out, struct carrel_error *err)
{
    char shown[64];
    uint64_t number;

    if (str_parse_u64(v, &number) < 0 || number == 0)
        return err_set(err, -EINVAL, "'%s' is not a number; expected one such as 100",
                str_escape(v, strlen(v), shown, sizeof(shown)));
    *out = number;
    return 0;
}

int files_take_entries(void *t, const char *v, struct carrel_error *err)
{
    return take_number(v, &args_of(t)->options.max_entries, err);
}

int files_take_count(void *t, const char *v, struct carrel_error *err)
{
    return take_number(v, &args_of(t)->count, err);
}

int files_take_bytes(void *t, const char *v, struct carrel_error *err)
{
    int r = str_parse_size(v, &args_of(t)->options.max_bytes, err);

    return r == 0 && args_of(t)->options.max_bytes == 0
                   ? err_set(err, -EINVAL, "'0' is too small; expected at least 1")
                   : r;
}

int files_command_run(const struct files_command *command, int argc, char **argv)
{
    struct carrel_error err = { 0 };
    struct files_args args = { .options = CARREL_FILES_OPTIONS_INIT };

    AUTO(free) char **words = calloc((size_t)argc + 1, sizeof(*words));
    int n = words ? options_parse_mixed(
                            command->rows, command->n_rows, argc, argv, &args, words, &err)
                  : err_set_errno(&err, -ENOMEM, "arguments");
    if (n >= 0 && args.wants_help) {
        printf("Usage: carrel %s [options] %s\n\n%s\n\nOptions:\n", command->name,
                command->words, command->help);
        options_print(command->rows, command->n_rows);
        return report_finish(0);
    }
    if (n >= 0 && (n < command->min_words || n > command->max_words))
        n = err_set(&err, -EINVAL, "expected 'carrel %s %s'; --help says more", command->name,
                command->words);
    if (n < 0)
        return report_error(STATUS_FAILED, &err);
    return command->run(&args, words, n);
}

int files_open(const char *word, struct carrel_sandbox **sandbox, const char **path,
        struct carrel_error *err)
{
    struct file_ref ref;

    int r = file_ref_inside(word, &ref, err);
    if (r == 0)
        r = carrel_sandbox_open(ref.id, sandbox, err);
    if (r < 0)
        return r;
    *path = ref.path;
    return 0;
}

int files_for_words(const struct files_args *args, char **words, int n, files_verb *verb)
{
    struct carrel_error err = { 0 };
    int status = 0;

    for (int i = 0; i < n; i++) {
        struct carrel_sandbox *sandbox = NULL;
        const char *path = NULL;
        int r = files_open(words[i], &sandbox, &path, &err);
        if (r == 0)
            r = verb(args, sandbox, path, &err);
        carrel_sandbox_free(sandbox);
        if (r < 0)
            status = report_error(STATUS_FAILED, &err);
    }
    return status;
}

void files_write_count(const struct carrel_files_count *count, struct json *json)
{
    json_bool(json, "ok", true);
    json_u64(json, "files", count->files);
    json_u64(json, "directories", count->directories);
    json_u64(json, "links", count->links);
    json_u64(json, "bytes", count->bytes);
    json_u64(json, "skipped", count->skipped);
}
