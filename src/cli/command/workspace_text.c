/* workspace_text.c - carrel workspace diff, log, patch: text that git writes. */
#include "base/auto.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/json.h"
#include "cli/args/workspace_args.h"
#include "cli/command/workspace.h"
#include "cli/print/paint.h"
#include "cli/print/report.h"
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEXT_MAX (UINT64_C(256) << 20) /* that is held in memory */

typedef int write_fn(const struct subcommand_args *args,
        const struct carrel_workspace *workspace, int fd, struct carrel_error *err);

struct kind {
    const char *key; /* in JSON */
    write_fn *write;
    enum paint paint;
    bool is_for_people; /* safe on a terminal */
};

/* What was written to `fd`, a memfd. */
static int read_back(int fd, struct buf *text, struct carrel_error *err)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return err_set_errno(err, -errno, "fstat");
    if ((uint64_t)st.st_size > TEXT_MAX)
        return err_set(err, -EFBIG,
                "it is too large to be held in memory; write it to a file, without --json");
    if (st.st_size == 0)
        return 0;
    const char *map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (map == MAP_FAILED)
        return err_set_errno(err, -errno, "mmap");
    buf_add(text, map, (size_t)st.st_size);
    (void)munmap((void *)(uintptr_t)map, (size_t)st.st_size);
    return text->is_short ? err_set_errno(err, -ENOMEM, "text") : 0;
}

/* {"ok":true,"name":NAME,KEY:TEXT} */
static int print_json(const char *name, const char *key, const struct buf *text)
{
    AUTO(buf_finish) struct buf out = BUF_INIT(SIZE_MAX / 4);
    struct json json = { .out = &out };

    json_object(&json, NULL);
    json_bool(&json, "ok", true);
    json_str(&json, "name", name);
    json_bytes(&json, key, text->data ? text->data : "", text->len);
    json_end_object(&json);
    return report_print_json(&out, 0);
}

static int print_harmless(const struct buf *text, enum paint paint, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf out = BUF_INIT(SIZE_MAX / 4);

    if (text->len == 0)
        return 0;
    paint_add(&out, paint, text->data, text->len);
    int r = out.is_short ? -ENOMEM : fd_write_all(STDOUT_FILENO, out.data, out.len);
    return r < 0 ? err_set_errno(err, r, "standard output") : 0;
}

/* A pager that was closed early has seen enough; git only knows that it could not write. */
static bool has_reader_left(void)
{
    struct pollfd out = { .fd = STDOUT_FILENO };

    return poll(&out, 1, 0) > 0 && (out.revents & POLLERR);
}

/* In memory first: for JSON, and for a terminal, which must not obey what a run wrote. */
static int print_held(const struct subcommand_args *args, const struct kind *kind,
        const struct carrel_workspace *workspace, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(TEXT_MAX + 1);
    AUTO(fd_close) int memory = memfd_create("text", MFD_CLOEXEC);

    if (memory < 0)
        return err_set_errno(err, -errno, "memfd_create");
    int r = kind->write(args, workspace, memory, err);
    if (r == 0)
        r = read_back(memory, &text, err);
    if (r < 0)
        return r;
    if (args->is_json)
        return print_json(verb_name(workspace), kind->key, &text);
    return print_harmless(
            &text, workspace_args_has_color(args) ? kind->paint : PAINT_NOTHING, err);
}

static int print_text(const struct subcommand_args *args, const struct kind *kind)
{
    AUTO(carrel_workspace_free) struct carrel_workspace *workspace = NULL;
    struct carrel_error err = { 0 };

    int r = verb_find(args, &workspace, &err);
    if (r == 0) {
        if (args->is_json || kind->is_for_people || workspace_args_has_color(args) ||
                isatty(STDOUT_FILENO))
            r = print_held(args, kind, workspace, &err);
        else
            r = kind->write(args, workspace, STDOUT_FILENO, &err);
    }
    if (r < 0 && has_reader_left())
        return 0;
    return r < 0 ? report_fail(args->is_json, &err) : r;
}

static int write_diff(const struct subcommand_args *args,
        const struct carrel_workspace *workspace, int fd, struct carrel_error *err)
{
    const struct workspace_args *own = workspace_args_of(args);
    struct carrel_diff_options options = CARREL_DIFF_OPTIONS_INIT;

    options.is_uncommitted = own->is_uncommitted;
    options.form = own->is_stat    ? CARREL_DIFF_STAT
                   : own->is_names ? CARREL_DIFF_NAMES
                                   : CARREL_DIFF_PATCH;
    return carrel_workspace_diff(workspace, &options, fd, err);
}

int verb_diff(const struct subcommand_args *args)
{
    const struct workspace_args *own = workspace_args_of(args);
    const struct kind kind = { "diff", write_diff,
        own->is_stat    ? PAINT_STAT
        : own->is_names ? PAINT_NOTHING
                        : PAINT_DIFF,
        false };
    struct carrel_error err = { 0 };

    if (!own->is_stat || !own->is_names)
        return print_text(args, &kind);
    (void)err_set(&err, -EINVAL, "--stat and --name-status cannot be combined");
    return report_fail(args->is_json, &err);
}

static int write_log(const struct subcommand_args *args,
        const struct carrel_workspace *workspace, int fd, struct carrel_error *err)
{
    (void)args;
    return carrel_workspace_log(workspace, fd, err);
}

int verb_log(const struct subcommand_args *args)
{
    static const struct kind kind = { "log", write_log, PAINT_STAT, true };

    return print_text(args, &kind);
}

static int write_patch(const struct subcommand_args *args,
        const struct carrel_workspace *workspace, int fd, struct carrel_error *err)
{
    (void)args;
    return carrel_workspace_patch(workspace, fd, err);
}

int verb_patch(const struct subcommand_args *args)
{
    static const struct kind kind = { "patch", write_patch, PAINT_NOTHING, false };

    return print_text(args, &kind);
}
