/*
 * apply_form.c - converts the new files for the user's work tree.
 *
 * The conversion is that of scratch_take_form(). A filter is a program; only the user may
 * decide to run it on what a run made, with the user's own git. So a path with a filter is a
 * conflict.
 */
#include "base/err.h"
#include "workspace/apply/apply_job.h"
#include <errno.h>
#include <stdio.h>
#include <strings.h>

#define SETTINGS_MAX ((size_t)1 << 20)

static const char filtered[] =
        "a git filter of yours converts it, and carrel runs none: commit the run, then git "
        "merge its branch";

static const char *result_of(const struct apply_job *job)
{
    return job->commit[0] ? job->commit : job->result;
}

static bool is_no(const char *value)
{
    return strcasecmp(value, "false") == 0 || strcasecmp(value, "no") == 0 ||
           strcasecmp(value, "off") == 0 || strcmp(value, "0") == 0 || !value[0];
}

/*
 * Whether the settings "filter.NAME.smudge\nvalue", NUL-terminated, make `driver` act on
 * checkout: it converts, or fails because it is required and not runnable.
 */
static bool has_driver(const struct buf *settings, const char *driver)
{
    size_t len = strlen(driver);

    for (size_t at = 0; at < settings->len; at += strlen(settings->data + at) + 1) {
        const char *item = settings->data + at + strlen("filter.");
        const char *value = strchr(item, '\n');
        if (strncmp(item, driver, len) != 0 || item[len] != '.')
            continue;
        bool is_required = strncmp(item + len, ".required", 9) == 0;
        if (is_required ? !value || !is_no(value + 1) : value && value[1])
            return true;
    }
    return false;
}

/* Triples: path, "filter", driver. */
static int find_filtered(struct apply_job *job, const struct buf *triples,
        const struct buf *settings, struct carrel_error *err)
{
    const char *path = NULL;
    int r = 0;
    int turn = 0;

    for (size_t at = 0; r == 0 && at < triples->len; at += strlen(triples->data + at) + 1) {
        const char *word = triples->data + at;
        if (turn == 0)
            path = word;
        else if (turn == 2 && has_driver(settings, word))
            r = apply_add_conflict(job->out, path, filtered, err);
        turn = (turn + 1) % 3;
    }
    return r;
}

static int refuse_filters(struct apply_job *job, const struct git *git, const struct buf *paths,
        struct carrel_error *err)
{
    AUTO(buf_finish) struct buf settings = BUF_INIT(SETTINGS_MAX);
    AUTO(buf_finish) struct buf triples = BUF_INIT(APPLY_MAX_BYTES);
    struct git_io io = GIT_IO_INIT;

    io.output = &settings;
    int r = git_run(&job->survey.git,
            GIT_ARGS("config", "-z", "--get-regexp",
                    "^filter\\..*\\.(smudge|process|required)$"),
            &io, err);
    if (r > 1)
        r = -EIO;
    if (r != 0)
        return r < 0 ? r : 0; /* 1: there is none */
    io.output = &triples;
    io.input = paths->data;
    io.input_len = paths->len;
    r = git_expect(git,
            GIT_ARGS(
                    "-c", job->attributes, "check-attr", "--cached", "-z", "--stdin", "filter"),
            &io, err);
    return r < 0 ? r : find_filtered(job, &triples, &settings, err);
}

static int list_paths(const struct apply_job *job, struct buf *paths, struct carrel_error *err)
{
    for (size_t i = 0; i < job->n_items; i++)
        if (job->items[i].kind == SWAP_PUT)
            buf_add(paths, job->items[i].path, strlen(job->items[i].path) + 1);
    return paths->is_short ? err_set_errno(err, -ENOMEM, "apply") : 0;
}

/* Reads the whole result into an index, where git looks for attributes. */
static int take_result(struct apply_job *job, struct git *git, struct carrel_error *err)
{
    struct git_io io = GIT_IO_INIT;

    if (asprintf(&job->new_index, "%s/new-index", job->swap->path) < 0) {
        job->new_index = NULL;
        return err_set_errno(err, -ENOMEM, "apply");
    }
    git->index_file = job->new_index;
    git->work_tree = job->swap->new;
    return git_expect(git,
            GIT_ARGS("-c", "core.protectHFS=true", "-c", "core.protectNTFS=true", "read-tree",
                    result_of(job)),
            &io, err);
}

int apply_form(struct apply_job *job, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf paths = BUF_INIT(APPLY_MAX_BYTES);
    struct git git = job->git;
    int r = list_paths(job, &paths, err);

    if (r < 0)
        return r;
    r = scratch_take_form(job->scratch, job->repo, &job->survey.git, &job->attributes, err);
    if (r == 0 && paths.len > 0)
        r = take_result(job, &git, err);
    if (r == 0 && paths.len > 0)
        r = refuse_filters(job, &git, &paths, err);
    return r;
}

int apply_stage(struct apply_job *job, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf paths = BUF_INIT(APPLY_MAX_BYTES);
    struct git git = job->git;
    int r = list_paths(job, &paths, err);

    if (r < 0 || paths.len == 0)
        return r;
    git.index_file = job->new_index;
    git.work_tree = job->swap->new;
    r = git_feed(&git, GIT_ARGS("-c", job->attributes, "checkout-index", "-q", "-z", "--stdin"),
            &paths, err);
    return r < 0 ? err_wrap(err, r, "write the new files") : 0;
}
