/*
 * take_pack.c - objects that a run's own git packed are looked at before anything trusts them.
 *
 * The run chose every byte of the stream and the name of the tip. git index-pack computes each
 * object's name from its content, so none can pose as another; with --strict it also refuses
 * what fsck refuses (names that mean .git, links up, malformed objects and .gitmodules) and any
 * link to an object that is nowhere. What remains is bounds: a few bytes of deltas can stand
 * for terabytes, and a few trees for more paths than atoms. So every process has its memory,
 * its files and its time limited, and we stop reading as soon as a limit is passed.
 */
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "workspace/difftree.h"
#include "workspace/harvest.h"
#include "workspace/name.h"
#include "workspace/quarantine.h"
#include "workspace/treepath.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MODE_GITLINK 0160000U
/* --fix-thin appends the repository's own objects that deltas build on. */
#define FILE_FACTOR 2
#define FILE_EXTRA_BYTES (UINT64_C(64) << 20)

struct taking {
    struct git git; /* reads scratch, quarantine and repository */
    const char *tip, *base;
    const struct harvest_limits *limits;
    uint64_t n_paths;
};

static struct git_io bounded(const struct harvest_limits *limits)
{
    struct git_io io = GIT_IO_INIT;

    io.timeout_ms = limits->timeout_ms;
    io.max_memory_bytes = limits->max_memory_bytes;
    return io;
}

/* A program that was killed was killed by a limit or by what it read: the stream's fault. */
static int refused(int r, const char *what, struct carrel_error *err)
{
    if (r > 0 || r == -EIO || r == -EINTR)
        r = -EBADMSG;
    if (err)
        err->code = r;
    return err_wrap(err, r, "%s", what);
}

static int index_pack(struct taking *taking, int pack_fd, struct carrel_error *err)
{
    const struct harvest_limits *limits = taking->limits;
    struct git_io io = bounded(limits);
    char max_input[64];

    (void)snprintf(
            max_input, sizeof(max_input), "--max-input-size=%" PRIu64, limits->max_pack_bytes);
    io.input_fd = pack_fd;
    if (limits->max_pack_bytes < UINT64_MAX / FILE_FACTOR - FILE_EXTRA_BYTES)
        io.max_file_bytes = limits->max_pack_bytes * FILE_FACTOR + FILE_EXTRA_BYTES;
    int r = git_run(&taking->git,
            GIT_ARGS(QUARANTINE_GIT, "index-pack", "--stdin", "--fix-thin", "--strict",
                    max_input),
            &io, err);
    if (r == 0)
        return 0;
    if (r > 0 && err && strstr(err->message, "maximum allowed size")) {
        char size[32];
        return err_set(err, -EFBIG, "the run's objects are larger than %s",
                str_size(limits->max_pack_bytes, size));
    }
    return refused(r, "the run's objects are refused", err);
}

/* "<id> commit <size>" for both, or it is no commit or not there. */
static int check_commits(struct taking *taking, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf output = BUF_INIT(1024);
    struct git_io io = bounded(taking->limits);
    char input[2 * OID_MAX + 2];
    char expected[OID_MAX + 16];

    (void)snprintf(input, sizeof(input), "%s\n%s\n", taking->tip, taking->base);
    io.input = input;
    io.input_len = strlen(input);
    io.output = &output;
    int r = git_expect(&taking->git,
            GIT_ARGS(QUARANTINE_GIT, "cat-file", "--batch-check=%(objectname) %(objecttype)"),
            &io, err);
    if (r < 0)
        return refused(r, "look at the run's commit", err);
    (void)snprintf(expected, sizeof(expected), "%s commit\n", taking->tip);
    if (strncmp(output.data ? output.data : "", expected, strlen(expected)) != 0)
        return err_set(
                err, -EBADMSG, "the run names %s as its commit, which is none", taking->tip);
    (void)snprintf(expected, sizeof(expected), "\n%s commit", taking->base);
    if (!strstr(output.data, expected))
        return err_set(err, -EINVAL, "the base %s is not a commit here", taking->base);
    return 0;
}

static int check_whole(struct taking *taking, struct carrel_error *err)
{
    const struct git_io limits = bounded(taking->limits);
    int r = quarantine_check_whole(&taking->git, taking->tip, taking->base, &limits, err);

    return r < 0 ? err_wrap(err, r, "the run's history is not whole") : 0;
}

static int check_count(struct taking *taking, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf output = BUF_INIT(64);
    struct git_io io = bounded(taking->limits);
    char max_count[48];
    uint64_t n;

    if (taking->limits->max_commits >= INT32_MAX)
        return 0; /* more than git can count, and than anybody can make */
    (void)snprintf(max_count, sizeof(max_count), "--max-count=%" PRIu64,
            taking->limits->max_commits + 1);
    io.output = &output;
    int r = git_expect(&taking->git,
            GIT_ARGS(QUARANTINE_GIT, "rev-list", "--count", max_count, taking->tip, "--not",
                    taking->base, "--"),
            &io, err);
    if (r < 0)
        return refused(r, "count the run's commits", err);
    if (str_parse_u64(output.data ? output.data : "", &n) < 0)
        return err_set(err, -EPROTO, "git rev-list did not print a number");
    if (n > taking->limits->max_commits)
        return err_set(err, -EFBIG, "the run made more than %" PRIu64 " commits",
                taking->limits->max_commits);
    return 0;
}

static int check_path(
        void *context, const struct difftree_entry *entry, struct carrel_error *err)
{
    struct taking *taking = context;
    char text[200];
    const char *why = NULL;

    if (taking->n_paths++ >= taking->limits->max_paths)
        return err_set(err, -EFBIG, "the run changed more than %" PRIu64 " paths",
                taking->limits->max_paths);
    if (entry->status == 'D')
        return 0; /* what the user has may have any name */
    why = treepath_why_not(entry->path);
    if (!why && entry->new_mode == MODE_GITLINK && entry->old_mode != MODE_GITLINK &&
            !taking->limits->allow_gitlinks)
        why = "it is a new submodule, which is not allowed";
    if (!why)
        return 0;
    return err_set(err, -EBADMSG, "the path '%s' is refused: %s",
            str_escape(entry->path, strlen(entry->path), text, sizeof(text)), why);
}

static int check_paths(struct taking *taking, struct carrel_error *err)
{
    const struct difftree difftree = {
        .from = taking->base,
        .to = taking->tip,
        .each = check_path,
        .context = taking,
        .timeout_ms = taking->limits->timeout_ms,
        .max_memory_bytes = taking->limits->max_memory_bytes,
    };
    int r = difftree_run(&taking->git, &difftree, err);

    return r == -EIO || r == -EINTR ? refused(r, "compare the run's commit", err) : r;
}

int harvest_take_pack(const struct repo *repo, const char *dir, int pack_fd, const char *tip,
        const char *base, const struct harvest_limits *limits, struct carrel_error *err)
{
    AUTO(quarantine_finish) struct quarantine quarantine = QUARANTINE_INIT;
    static int (*const checks[])(struct taking *, struct carrel_error *) = {
        check_commits,
        check_count,
        check_whole,
        check_paths,
    };

    if (!name_is_oid(tip) || !name_is_oid(base))
        return err_set(err, -EBADMSG, "the name of a commit is 40 or 64 hex digits");
    int r = quarantine_begin(repo, dir, &quarantine, err);
    if (r < 0)
        return r;
    struct taking taking = {
        .git = harvest_git(repo, quarantine.objects),
        .tip = tip,
        .base = base,
        .limits = limits,
    };
    r = index_pack(&taking, pack_fd, err);
    for (size_t i = 0; i < ARRAY_LEN(checks) && r == 0; i++)
        r = checks[i](&taking, err);
    return r < 0 ? r : quarantine_keep(&quarantine, err);
}
