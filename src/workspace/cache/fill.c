/*
 * fill.c - what whole trees and layers have in common: git's settings, the owner in the index,
 * and the second that must pass.
 */
#include "workspace/cache/fill.h"
#include "base/err.h"
#include "base/fd.h"
#include "git/format/index.h"
#include "git/scope.h"
#include "workspace/private.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Files of the running second that git may look into again, in a tree of this many files. */
#define FRESH_MAX_FILES 64
#define FRESH_MAX_BYTES (1 << 20)
#define FRESH_MAX_TREE 5000

#define BLOCK_BYTES 4096

/*
 * Settings of the user that would make the index something else than a plain list of all files
 * with all they have: compressed, split, sparse, without a checksum, without owner or times.
 */
static const char *const settings[] = {
    "--no-replace-objects", /* the run has no refs/replace */
    "-c",
    "index.version=2", //
    "-c",
    "index.sparse=false", //
    "-c",
    "index.skipHash=false", //
    "-c",
    "core.splitIndex=false", //
    "-c",
    "core.fsmonitor=false", //
    "-c",
    "core.untrackedCache=false", //
    "-c",
    "core.sparseCheckout=false", //
    "-c",
    "core.ignoreStat=false", //
    "-c",
    "core.checkStat=default", //
    "-c",
    "core.trustctime=true", //
    "-c",
    "feature.manyFiles=false", //
    "-c",
    "submodule.recurse=false", //
    "-c",
    "advice.detachedHead=false",
};

int fill_git(const struct git *git, const char *const *args, struct git_io *io,
        struct carrel_error *err)
{
    const char *all[ARRAY_LEN(settings) + 16];
    size_t n = ARRAY_LEN(settings);

    memcpy(all, settings, sizeof(settings));
    while (*args && n < ARRAY_LEN(all) - 1)
        all[n++] = *args++;
    all[n] = NULL;
    return git_expect(git, all, io, err);
}

struct git fill_user_git(const struct fill *fill)
{
    struct git git = repo_user_git(fill->repo);

    if (fill->owner.is_of_run)
        git.settings = (const char *const *)fill->no_filters;
    return git;
}

int fill_check_out(const struct fill *fill, const struct repo *repo, const char *commit,
        const char *tree, const char *index, struct carrel_error *err)
{
    AUTO(scope_free_settings) char **no_filters = NULL;
    struct git git = fill_user_git(fill);
    struct git_io io = GIT_IO_INIT;

    if (repo != fill->repo) { /* a submodule */
        git = repo_user_git(repo);
        int r = fill->owner.is_of_run ? scope_no_filters(&git, &no_filters, err) : 0;
        if (r < 0)
            return r;
        if (fill->owner.is_of_run)
            git.settings = (const char *const *)no_filters;
    }
    git.work_tree = tree;
    git.index_file = index;
    return fill_git(
            &git, GIT_ARGS("read-tree", "--no-sparse-checkout", "-m", "-u", commit), &io, err);
}

int fill_template(
        struct fill *fill, const struct repo *repo, const char *name, struct carrel_error *err)
{
    if (mkdirat(fill->dir, name, 0755) < 0)
        return err_set_errno(err, -errno, "make '%s' in a checkout", name);
    AUTO(fd_close) int dir = openat(fill->dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return err_set_errno(err, -errno, "open '%s' in a checkout", name);
    return private_make_template(repo, dir, err);
}

static int64_t coarse_second(void)
{
    struct timespec now;

    /* The clock that file systems stamp with: it may be a tick behind the exact one. */
    (void)clock_gettime(CLOCK_REALTIME_COARSE, &now);
    return now.tv_sec;
}

static int read_index(
        struct fill *fill, const char *name, struct index **out, struct carrel_error *err)
{
    AUTO(fd_close) int fd = openat(fill->dir, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_set_errno(err, -errno, "open '%s'", name);
    int r = index_read(fd, fill->repo->is_sha256, out, err);
    return r < 0 ? err_wrap(err, r, "read the index that git made") : 0;
}

int fill_own_index(
        struct fill *fill, const char *name, int64_t since_s, struct carrel_error *err)
{
    AUTO(index_free) struct index *index = NULL;
    int r = read_index(fill, name, &index, err);
    if (r < 0)
        return r;
    assert(index);

    index_set_owner(index, fill->owner.uid, fill->owner.gid);
    r = index_write(index, fill->dir, name, err);
    if (r < 0)
        return r;
    fill->facts.files += index->n;
    for (size_t i = 0; i < index->n; i++)
        if (index->entries[i].mtime_s >= since_s)
            fill->facts.bytes += ((uint64_t)index->entries[i].size + BLOCK_BYTES) /
                                 BLOCK_BYTES * BLOCK_BYTES;
    buf_add(&fill->indexes, name, strlen(name) + 1);
    return fill->indexes.is_short ? err_set_errno(err, -ENOMEM, "make a checkout") : 0;
}

/* Files that may still be changed in the second that they were made in. */
struct fresh {
    uint64_t files;
    uint64_t bytes;
};

static int count_fresh(struct fill *fill, const char *name, int64_t now_s, struct fresh *out,
        struct carrel_error *err)
{
    AUTO(index_free) struct index *index = NULL;
    int r = read_index(fill, name, &index, err);
    if (r < 0)
        return r;
    assert(index);
    for (size_t i = 0; i < index->n; i++) {
        if (index->entries[i].mtime_s < now_s)
            continue;
        out->files++;
        out->bytes += index->entries[i].size;
    }
    return 0;
}

/* Until the running second is over; not for ever when the clock is set back. */
static void wait_for_next_second(int64_t now_s)
{
    for (int round = 0; round < 20 && coarse_second() <= now_s; round++) {
        struct timespec now;
        (void)clock_gettime(CLOCK_REALTIME_COARSE, &now);
        /* A tick more: this clock comes late. Cut short: the next round takes the rest. */
        long rest_ns = 1000000000L - now.tv_nsec + 1000000L;
        struct timespec rest = { rest_ns / 1000000000L, rest_ns % 1000000000L };
        (void)nanosleep(&rest, NULL);
    }
}

/*
 * git compares whole seconds. A file of the same second as the index may have been changed
 * after it was recorded, so git reads such files again, and rewrites the index when it met any.
 * That is right, and cheap for a few files of a small tree; for others the second is waited
 * out, once, instead of in every run. An index must never be dated into a second that has not
 * come: then git would believe that it is newer than edits which are still to be made.
 */
int fill_settle(struct fill *fill, struct carrel_error *err)
{
    struct fresh fresh = { 0 };
    int64_t now_s = coarse_second();
    const struct buf *names = &fill->indexes;

    for (size_t at = 0; at < names->len; at += strlen(names->data + at) + 1) {
        int r = count_fresh(fill, names->data + at, now_s, &fresh, err);
        if (r < 0)
            return r;
    }
    if (fresh.files > 0 && (fresh.files > FRESH_MAX_FILES || fresh.bytes > FRESH_MAX_BYTES ||
                                   fill->facts.files > FRESH_MAX_TREE))
        wait_for_next_second(now_s);
    for (size_t at = 0; at < names->len; at += strlen(names->data + at) + 1)
        if (utimensat(fill->dir, names->data + at, NULL, AT_SYMLINK_NOFOLLOW) < 0)
            return err_set_errno(err, -errno, "date an index");
    return 0;
}
