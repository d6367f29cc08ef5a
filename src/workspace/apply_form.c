/*
 * apply_form.c - the form that the new files are to have in the user's work tree.
 *
 * What git's own code converts on checkout (line ends, encodings, idents) is converted as the
 * user's git would: by the attributes of the result and those that the user has outside of
 * commits. The scratch's git does it, for which no filter is defined. A filter is a program;
 * whether it gets to see what a run made is for the user to decide, who has git for that. So
 * where one has a say, that path is a conflict.
 */
#include "base/err.h"
#include "base/fd.h"
#include "workspace/apply_job.h"
#include "workspace/conversion.h"
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <strings.h>
#include <unistd.h>

#define SETTINGS_MAX ((size_t)1 << 20)
#define ATTRIBUTES_MAX ((size_t)64 << 20)

static const char filtered[] =
        "a git filter of yours converts it, and carrel runs none: commit the run, then git "
        "merge its branch";

static const char *result_of(const struct apply_job *job)
{
    return job->commit[0] ? job->commit : job->result;
}

/* The user's attributes of one file; a file that is not there has none. */
static int add_attributes(struct buf *text, const char *path, struct carrel_error *err)
{
    char chunk[4096];
    AUTO(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
        return 0;
    if (fd < 0)
        return err_set_errno(err, -errno, "read '%s'", path);

    for (ssize_t n = sizeof(chunk); n == (ssize_t)sizeof(chunk);) {
        n = fd_read_all(fd, chunk, sizeof(chunk));
        if (n < 0)
            return err_set_errno(err, (int)n, "read '%s'", path);
        buf_add(text, chunk, (size_t)n);
    }
    buf_add_str(text, "\n");
    return text->is_short ? err_set(err, -EFBIG, "'%s' is too large", path) : 0;
}

static int write_file(const char *path, const struct buf *text, int flags)
{
    AUTO(fd_close) int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0600);

    return fd < 0 ? -errno : fd_write_all(fd, text->data, text->len);
}

/* Instead of those that take back every conversion: what the user's info/attributes has. */
static int take_own_attributes(struct apply_job *job, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(ATTRIBUTES_MAX);
    char path[PATH_MAX];

    (void)snprintf(path, sizeof(path), "%s/info/attributes", job->repo->common_dir);
    int r = add_attributes(&text, path, err);
    if (r < 0)
        return r;
    (void)snprintf(path, sizeof(path), "%s/info/attributes", job->scratch->path);
    r = write_file(path, &text, O_TRUNC);
    return r < 0 ? err_set_errno(err, r, "write '%s'", path) : 0;
}

/* Those of the system, and after them those of the user's configuration, which outrank them. */
static int take_global_attributes(struct apply_job *job, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(ATTRIBUTES_MAX);
    const char *no_system = getenv("GIT_ATTR_NOSYSTEM");
    char path[PATH_MAX] = "";

    int r = conversion_global_attributes(&job->survey.git, path, err);
    if (r == 0 && (!no_system || !no_system[0]))
        r = add_attributes(&text, "/etc/gitattributes", err);
    if (r == 0 && path[0])
        r = add_attributes(&text, path, err);
    if (r < 0)
        return r;
    if (asprintf(&job->attributes, "core.attributesFile=%s/attributes", job->scratch->path) <
            0) {
        job->attributes = NULL;
        return err_set_errno(err, -ENOMEM, "apply");
    }
    r = write_file(strchr(job->attributes, '=') + 1, &text, O_TRUNC);
    return r < 0 ? err_set_errno(err, r, "write '%s'", job->attributes) : 0;
}

static bool is_word(const char *value)
{
    size_t n = 0;

    while (isalnum((unsigned char)value[n]))
        n++;
    return n > 0 && !value[n];
}

/* What the user's configuration says of line ends; of several values the last one counts. */
static int take_line_ends(struct apply_job *job, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf found = BUF_INIT(SETTINGS_MAX);
    AUTO(buf_finish) struct buf text = BUF_INIT(SETTINGS_MAX);
    struct git_io io = GIT_IO_INIT;
    char path[PATH_MAX];

    io.output = &found;
    int r = git_run(&job->survey.git,
            GIT_ARGS("config", "-z", "--get-regexp", "^core\\.(autocrlf|eol)$"), &io, err);
    if (r > 1) /* 1: nothing matches */
        r = -EIO;
    if (r < 0)
        return r;
    buf_add_str(&text, "[core]\n");
    for (size_t at = 0; at < found.len; at += strlen(found.data + at) + 1) {
        const char *item = found.data + at;
        const char *value = strchr(item, '\n');
        if (!value)
            buf_addf(&text, "\t%s\n", strchr(item, '.') + 1);
        else if (is_word(value + 1))
            buf_addf(&text, "\t%.*s = %s\n", (int)(value - item) - 5, item + 5, value + 1);
    }
    if (text.is_short)
        return err_set_errno(err, -ENOMEM, "apply");
    (void)snprintf(path, sizeof(path), "%s/config", job->scratch->path);
    r = write_file(path, &text, O_APPEND);
    return r < 0 ? err_set_errno(err, r, "write '%s'", path) : 0;
}

static bool is_no(const char *value)
{
    return strcasecmp(value, "false") == 0 || strcasecmp(value, "no") == 0 ||
           strcasecmp(value, "off") == 0 || strcmp(value, "0") == 0 || !value[0];
}

/* Whether the settings "filter.NAME.smudge\nvalue", NUL-terminated, have `driver` do something
 * on checkout: convert, or fail because it must and cannot. */
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

/* The whole result as an index: git looks for attributes there. */
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
    r = take_own_attributes(job, err);
    if (r == 0)
        r = take_global_attributes(job, err);
    if (r == 0)
        r = take_line_ends(job, err);
    if (r == 0 && paths.len > 0)
        r = take_result(job, &git, err);
    if (r == 0 && paths.len > 0)
        r = refuse_filters(job, &git, &paths, err);
    return r < 0 ? err_wrap(err, r, "find out how your git writes files") : 0;
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
