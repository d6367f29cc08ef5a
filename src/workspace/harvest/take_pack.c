/*
 * take_pack.c - checks the objects that a run's own git packed.
 *
 * The run chose every byte of the stream and the name of the tip. git index-pack computes each
 * object's id from its content, so no object can pose as another; with --strict it also refuses
 * what fsck refuses (names equivalent to .git, links up, malformed objects and .gitmodules) and
 * any link to a missing object. What remains is size: a few bytes of deltas can expand to
 * terabytes, and a few trees to any number of paths. So memory, files and time of every process
 * are limited, and we stop reading as soon as a limit is exceeded.
 */
#include "base/err.h"
#include "base/str.h"
#include "git/name.h"
#include "workspace/harvest/harvest.h"
#include "workspace/harvest/inspect.h"
#include "workspace/harvest/quarantine.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* --fix-thin appends the repository's own objects that are bases of deltas. */
#define FILE_FACTOR 2
#define FILE_EXTRA_BYTES (UINT64_C(64) << 20)

static int index_pack(const struct git *git, int pack_fd, const struct harvest_limits *limits,
        struct carrel_error *err)
{
    struct git_io io = inspect_bounds(limits);
    char max_input[64];

    (void)snprintf(max_input, sizeof(max_input), "--max-input-size=%" PRIu64,
            limits->max_pack_bytes < INT64_MAX ? limits->max_pack_bytes : INT64_MAX);
    io.input_fd = pack_fd;
    if (limits->max_pack_bytes < UINT64_MAX / FILE_FACTOR - FILE_EXTRA_BYTES)
        io.max_file_bytes = limits->max_pack_bytes * FILE_FACTOR + FILE_EXTRA_BYTES;
    int r = git_run(git,
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
    return inspect_refused(r, "the run's objects are refused", err);
}

int harvest_take_pack(const struct repo *repo, const char *dir, int pack_fd, const char *tip,
        const char *base, const struct harvest_limits *limits, struct carrel_error *err)
{
    AUTO(quarantine_finish) struct quarantine quarantine = QUARANTINE_INIT;

    if (!name_is_oid(tip) || !name_is_oid(base))
        return err_set(err, -EBADMSG, "the name of a commit is 40 or 64 hex digits");
    int r = quarantine_begin(repo, dir, &quarantine, err);
    if (r < 0)
        return r;
    const struct git git = harvest_git(repo, quarantine.objects);
    r = index_pack(&git, pack_fd, limits, err);
    if (r == 0)
        r = inspect(&git, tip, base, limits, err);
    return r < 0 ? r : quarantine_keep(&quarantine, err);
}
