/*
 * inspect.c - objects that are well-formed one by one may still be too many, or form a history
 * that the user's repository must not get.
 */
#include "workspace/harvest/inspect.h"
#include "base/err.h"
#include "base/str.h"
#include "git/format/treepath.h"
#include "workspace/harvest/difftree.h"
#include "workspace/harvest/quarantine.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MODE_GITLINK 0160000U

struct inspection {
    const struct git *git;
    const char *tip, *base;
    const struct harvest_limits *limits;
    uint64_t n_paths;
    uint64_t path_bytes;
};

struct git_io inspect_bounds(const struct harvest_limits *limits)
{
    struct git_io io = GIT_IO_INIT;

    io.timeout_ms = limits->timeout_ms;
    io.max_memory_bytes = limits->max_memory_bytes;
    return io;
}

int inspect_refused(int r, const char *what, struct carrel_error *err)
{
    if (r > 0 || r == -EIO || r == -EINTR)
        r = -EBADMSG;
    if (err)
        err->code = r;
    return err_wrap(err, r, "%s", what);
}

/* Each line must be "<id> commit <size>"; else it is not a commit or does not exist. */
static int check_commits(struct inspection *it, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf output = BUF_INIT(1024);
    struct git_io io = inspect_bounds(it->limits);
    char input[2 * OID_MAX + 2];
    char expected[OID_MAX + 16];

    (void)snprintf(input, sizeof(input), "%s\n%s\n", it->tip, it->base);
    io.input = input;
    io.input_len = strlen(input);
    io.output = &output;
    int r = git_expect(it->git,
            GIT_ARGS(QUARANTINE_GIT, "cat-file", "--batch-check=%(objectname) %(objecttype)"),
            &io, err);
    if (r < 0)
        return inspect_refused(r, "look at the run's commit", err);
    (void)snprintf(expected, sizeof(expected), "%s commit\n", it->tip);
    if (strncmp(output.data ? output.data : "", expected, strlen(expected)) != 0)
        return err_set(err, -EBADMSG, "the run names %s as its commit, which is not a commit",
                it->tip);
    (void)snprintf(expected, sizeof(expected), "\n%s commit", it->base);
    if (!output.data || !strstr(output.data, expected))
        return err_set(err, -EINVAL, "the base %s is not a commit here", it->base);
    return 0;
}

static int check_whole(struct inspection *it, struct carrel_error *err)
{
    const struct git_io limits = inspect_bounds(it->limits);
    int r = quarantine_check_whole(it->git, it->tip, it->base, &limits, err);

    return r < 0 ? err_wrap(err, r, "the run's history is incomplete") : 0;
}

static int check_count(struct inspection *it, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf output = BUF_INIT(64);
    struct git_io io = inspect_bounds(it->limits);
    char max_count[48];
    uint64_t n;

    if (it->limits->max_commits >= INT32_MAX)
        return 0; /* more than git can count */
    (void)snprintf(
            max_count, sizeof(max_count), "--max-count=%" PRIu64, it->limits->max_commits + 1);
    io.output = &output;
    int r = git_expect(it->git,
            GIT_ARGS(QUARANTINE_GIT, "rev-list", "--count", max_count, it->tip, "--not",
                    it->base, "--"),
            &io, err);
    if (r < 0)
        return inspect_refused(r, "count the run's commits", err);
    if (str_parse_u64(output.data ? output.data : "", &n) < 0)
        return err_set(err, -EPROTO, "git rev-list did not print a number");
    if (n > it->limits->max_commits)
        return err_set(err, -EFBIG, "the run made more than %" PRIu64 " commits",
                it->limits->max_commits);
    return 0;
}

static int check_path(
        void *context, const struct difftree_entry *entry, struct carrel_error *err)
{
    struct inspection *it = context;
    char text[200];
    const char *why = NULL;

    if (it->n_paths++ >= it->limits->max_paths)
        return err_set(err, -EFBIG, "the run changed more than %" PRIu64 " paths",
                it->limits->max_paths);
    it->path_bytes += strlen(entry->path) + 1;
    if (it->path_bytes > it->limits->max_path_bytes)
        return err_set(err, -EFBIG,
                "the paths that the run changed have more than %" PRIu64 " bytes",
                it->limits->max_path_bytes);
    if (entry->status == 'D')
        return 0; /* the user's own files may have any name */
    why = treepath_why_not(entry->path);
    if (!why && entry->new_mode == MODE_GITLINK && entry->old_mode != MODE_GITLINK &&
            !it->limits->allow_gitlinks)
        why = "it is a new submodule, which is not allowed";
    if (!why)
        return 0;
    return err_set(err, -EBADMSG, "the path '%s' is refused: %s",
            str_escape(entry->path, strlen(entry->path), text, sizeof(text)), why);
}

static int check_paths(struct inspection *it, struct carrel_error *err)
{
    const struct difftree difftree = {
        .from = it->base,
        .to = it->tip,
        .each = check_path,
        .context = it,
        .timeout_ms = it->limits->timeout_ms,
        .max_memory_bytes = it->limits->max_memory_bytes,
    };
    int r = difftree_run(it->git, &difftree, err);

    return r == -EIO || r == -EINTR ? inspect_refused(r, "compare the run's commit", err) : r;
}

int inspect(const struct git *git, const char *tip, const char *base,
        const struct harvest_limits *limits, struct carrel_error *err)
{
    static int (*const checks[])(struct inspection *, struct carrel_error *) = {
        check_commits,
        check_count,
        check_whole,
        check_paths,
    };
    struct inspection inspection = {
        .git = git,
        .tip = tip,
        .base = base,
        .limits = limits,
    };
    int r = 0;

    for (size_t i = 0; i < ARRAY_LEN(checks) && r == 0; i++)
        r = checks[i](&inspection, err);
    return r;
}
