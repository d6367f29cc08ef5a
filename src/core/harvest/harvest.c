/* harvest.c - harvesting a workspace, from outside where possible and from inside where not. */
#include "core/harvest/harvest.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "base/tree.h"
#include "core/harvest/inside.h"
#include "core/worktree/include.h"
#include "core/worktree/layers.h"
#include "core/worktree/worktree.h"
#include "git/git.h"
#include "layer/layer.h"
#include "workspace/harvest/changes.h"
#include "workspace/private.h"
#include "workspace/renew.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Less is too little for any work of git. */
#define GIT_LEAST_BYTES (UINT64_C(256) << 20)
#define GIT_LEAST_MS 30000U

#define MAX_EXCLUDE (1U << 20)
#define FLAT "flat"                        /* beside upper/, during a harvest */
#define ODDITIES "oddities"                /* what is in the tree and not in the harvest */
#define ODDITIES_MAX (2 * PATHS_MAX_BYTES) /* with their kinds */

void harvest_finish(struct harvest *harvest)
{
    oddities_free(harvest->oddities, harvest->n_oddities);
    *harvest = (struct harvest){ 0 };
}

/* What the run's own commits added is tracked, also where an ignore rule matches it. */
static int list_added(struct harvest_job *job, struct names *names, struct carrel_error *err)
{
    const struct workspace *ws = job->worktree->ws;
    struct git git = harvest_git(job->worktree->repo, job->quarantine);
    struct git_io io = GIT_IO_INIT;

    if (strcmp(job->tip, ws->base) == 0)
        return 0;
    io.output = &names->text;
    int r = git_expect(&git,
            GIT_ARGS("diff-tree", "-r", "-z", "--name-only", "--no-renames", "--diff-filter=A",
                    ws->base, job->tip),
            &io, err);
    return r < 0 ? r : names_split(names, err);
}

/* A directory of hard links shows all layers of the workspace as one. */
static int flatten(const struct worktree *worktree, struct carrel_error *err)
{
    const struct workspace *ws = worktree->ws;
    const char *const *lower = worktree->layers->lower[LAYERS_TREE];
    const size_t n = worktree->layers->n_sealed;
    const char *trees[LAYER_MAX_CHAIN + 1];
    char own[PATH_MAX];

    int r = tree_remove(ws->dir, FLAT, err); /* of a harvest that was killed */
    if (r < 0)
        return r;
    if (snprintf(own, sizeof(own), "%s/upper", ws->path) >= (int)sizeof(own))
        return err_set_errno(err, -ENAMETOOLONG, "'%s'", ws->path);
    trees[0] = own;
    memcpy(trees + 1, lower, n * sizeof(trees[0]));
    return layer_flatten(trees, n + 1, lower + n, ws->dir, FLAT, err);
}

static int open_changes(struct harvest_job *job, struct carrel_error *err)
{
    const struct workspace *ws = job->worktree->ws;
    const char *name = ws->layers ? FLAT : "upper";

    int r = ws->layers ? flatten(job->worktree, err) : 0;
    if (r < 0)
        return r;
    job->upper = openat(ws->dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return job->upper < 0 ? err_set_errno(err, -errno, "open '%s/%s'", ws->path, name) : 0;
}

static void close_changes(struct harvest_job *job)
{
    fd_close(fd_steal(&job->upper));
    if (job->worktree->ws->layers)
        (void)tree_remove(job->worktree->ws->dir, FLAT, NULL); /* else the next one does */
}

/*
 * How many bytes are read to find line ends that git would convert. Where a filter converts, or
 * nothing does, they make no difference. More than the run may have are refused without being
 * read, see commit_outside().
 */
static uint64_t bytes_to_scan(const struct harvest_job *job)
{
    const struct checkout *checkout = job->worktree->checkout;

    return checkout->has_line_ends && !checkout->has_filters && !job->worktree->ws->is_folder
                   ? job->bounds->max_bytes
                   : 0;
}

static int walk(struct harvest_job *job, struct carrel_error *err)
{
    struct upper_limits limits = UPPER_LIMITS_INIT;
    const struct checkout *checkout = job->worktree->checkout;
    AUTO(names_finish) struct names added = NAMES_INIT;
    AUTO(names_finish) struct names included = NAMES_INIT;
    AUTO(buf_finish) struct buf exclude = BUF_INIT(MAX_EXCLUDE);
    char path[PATH_MAX];
    size_t n_gitlinks = 0;

    while (checkout->gitlinks && checkout->gitlinks[n_gitlinks])
        n_gitlinks++;
    (void)snprintf(path, sizeof(path), "%s/info/exclude", checkout->git);
    int r = job->worktree->ws->is_folder ? 0 : fd_add_file(AT_FDCWD, path, &exclude, err);
    if (r == 0)
        r = included_read(job->worktree, &included, err);
    if (r == 0)
        r = list_added(job, &added, err);
    if (r < 0)
        return r;
    const struct upper_base base = {
        .lower = (const char *const *)checkout->lower,
        .exclude = exclude.data ? exclude.data : "",
        .tracked = added.list,
        .n_tracked = added.n,
        .included = included.list,
        .n_included = included.n,
        .gitlinks = (const char *const *)checkout->gitlinks,
        .n_gitlinks = n_gitlinks,
        .has_no_rules = job->worktree->ws->is_folder,
    };
    limits.max_cr_bytes = bytes_to_scan(job);
    return upper_walk(job->upper, &base, &limits, &job->changes, err);
}

/*
 * Whether carrel itself can tell what git would commit. Not if content is converted on its way
 * into a commit, and not if a submodule may have moved: its entry is no file of the tree.
 */
static bool needs_git(const struct harvest_job *job)
{
    const struct checkout *checkout = job->worktree->checkout;
    bool has_moved = checkout->has_gitlinks && strcmp(job->tip, job->worktree->ws->base) != 0;
    bool is_converted = checkout->has_filters ||
                        (checkout->has_line_ends && job->changes.has_cr) ||
                        job->changes.has_attributes;

    for (size_t i = 0; i < job->changes.n_oddities; i++)
        has_moved = has_moved || job->changes.oddities[i].kind == ODDITY_GITLINK;
    return has_moved || (is_converted && job->changes.n > 0);
}

static int commit_outside(struct harvest_job *job, struct carrel_error *err)
{
    const struct harvest_author author = {
        .name = "carrel", .email = "carrel@localhost", .when_s = (int64_t)time(NULL)
    };

    if (job->changes.bytes > job->bounds->max_bytes)
        return err_set(err, -EDQUOT,
                "its changes have %" PRIu64 " bytes, and with as many of git objects it would "
                "pass --disk",
                job->changes.bytes);
    if (job->changes.n == 0 && strcmp(job->tip, job->worktree->ws->base) == 0) {
        (void)snprintf(job->snapshot, sizeof(job->snapshot), "%s", job->tip);
        return 0;
    }
    return harvest_commit_changes(job->worktree->repo, job->quarantine, job->upper,
            &job->changes, job->worktree->checkout->tree, job->tip, HARVEST_MESSAGE, &author,
            &job->limits, job->snapshot, err);
}

static int take_overlay(struct harvest_job *job, struct carrel_error *err)
{
    const struct workspace *ws = job->worktree->ws;
    int r = 0;

    (void)snprintf(job->tip, sizeof(job->tip), "%s", ws->base);
    if (!ws->is_folder) {
        AUTO(fd_close)
        int git = openat(ws->dir, "gitupper", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (git < 0)
            return err_set_errno(err, -errno, "open '%s/gitupper'", ws->path);
        if (ws->layers || !private_is_untouched(git, ws->branch, ws->base))
            r = inside_take(job, INSIDE_COMMITS, err);
    }
    if (r == 0)
        r = open_changes(job, err);
    if (r == 0)
        r = walk(job, err);
    if (r == 0)
        r = !ws->is_folder && needs_git(job) ? inside_take(job, INSIDE_ALL, err)
                                             : commit_outside(job, err);
    close_changes(job);
    return r;
}

/*
 * Each snapshot gets a new id, since its time is part of it. If the commit on the branch has
 * the same content, that stays the snapshot: a harvest must not make committed work
 * uncommitted. Its objects are copied back, because the user may delete the branch.
 */
static bool is_on_branch(const struct harvest_job *job)
{
    const struct workspace *ws = job->worktree->ws;
    struct git git = harvest_git(job->worktree->repo, job->quarantine);

    if (!ws->is_published || strcmp(job->tip, ws->tip) != 0)
        return false;
    if (strcmp(job->snapshot, ws->snapshot) != 0 &&
            git_run(&git, GIT_ARGS("diff-tree", "--quiet", ws->snapshot, job->snapshot), NULL,
                    NULL) != 0)
        return false;
    return harvest_join(job->worktree->repo, job->quarantine, ws->base, ws->snapshot, NULL) ==
           0;
}

/* Each one: kind, path, NUL. */
static int write_oddities(const struct harvest_job *job, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(ODDITIES_MAX);
    char path[PATH_MAX];

    for (size_t i = 0; i < job->changes.n_oddities; i++) {
        const struct oddity *oddity = &job->changes.oddities[i];
        buf_addf(&text, "%u ", (unsigned)oddity->kind);
        buf_add(&text, oddity->path, strlen(oddity->path) + 1);
    }
    if (text.is_short)
        return err_set_errno(err, -ENOMEM, "what was left out");
    if (snprintf(path, sizeof(path), "%s/" ODDITIES, job->worktree->ws->path) >=
            (int)sizeof(path))
        return err_set_errno(err, -ENAMETOOLONG, "'%s'", job->worktree->ws->path);
    return fd_replace_file(path, text.data ? text.data : "", text.len, 0600, err);
}

int harvest_oddities(
        const struct worktree *worktree, struct harvest *out, struct carrel_error *err)
{
    const struct upper_limits limits = UPPER_LIMITS_INIT;
    struct change_list list = { .limits = &limits };
    AUTO(buf_finish) struct buf text = BUF_INIT(ODDITIES_MAX);
    struct stat st;

    *out = (struct harvest){ .is_changed =
                                     strcmp(worktree->ws->snapshot, worktree->ws->base) != 0 };
    if (fstatat(worktree->ws->dir, ODDITIES, &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT)
        return 0; /* of an older carrel */
    int r = fd_add_file(worktree->ws->dir, ODDITIES, &text, err);
    for (size_t at = 0; r == 0 && at < text.len;) {
        char *path;
        unsigned long kind = strtoul(text.data + at, &path, 10);
        if (kind > ODDITY_UNREADABLE || *path != ' ') {
            r = err_set(err, -EBADMSG, "'%s/" ODDITIES "' is damaged", worktree->ws->path);
            break;
        }
        r = changes_add_oddity(&list, path + 1, (enum oddity_kind)kind, err);
        at = (size_t)(path + 1 - text.data) + strlen(path + 1) + 1;
    }
    out->oddities = ptr_steal(&list.all.oddities);
    out->n_oddities = list.all.n_oddities;
    return r;
}

/* Git on the host, which reads what the run made, takes no more than the run could. */
static void bound_git(struct harvest_limits *limits, const struct harvest_bounds *bounds)
{
    const uint64_t memory = bounds->limits ? bounds->limits[LIMIT_MEMORY] : 0;

    if (memory > 0 && memory < limits->max_memory_bytes)
        limits->max_memory_bytes = memory < GIT_LEAST_BYTES ? GIT_LEAST_BYTES : memory;
    if (bounds->timeout_ms > 0 && bounds->timeout_ms < limits->timeout_ms)
        limits->timeout_ms =
                bounds->timeout_ms < GIT_LEAST_MS ? GIT_LEAST_MS : (unsigned)bounds->timeout_ms;
}

int harvest_take(struct worktree *worktree, struct runtime *runtime,
        const struct harvest_bounds *bounds, struct harvest *out, struct carrel_error *err)
{
    struct workspace *ws = worktree->ws;
    struct harvest_job job = {
        .worktree = worktree, .runtime = runtime, .limits = HARVEST_LIMITS_INIT, .upper = -1
    };

    if (job.limits.max_pack_bytes > bounds->max_bytes)
        job.limits.max_pack_bytes = bounds->max_bytes;
    job.bounds = bounds;
    bound_git(&job.limits, bounds);
    int r = objects_dir_path(worktree, job.quarantine, err);
    if (r < 0)
        return r;
    r = harvest_open(job.quarantine, err);
    if (r == 0)
        r = ws->mode == WORKSPACE_OVERLAY ? take_overlay(&job, err)
                                          : inside_take(&job, INSIDE_ALL, err);
    if (r == 0)
        r = write_oddities(&job, err);
    if (r == 0 && !is_on_branch(&job)) {
        memcpy(ws->tip, job.tip, sizeof(ws->tip));
        memcpy(ws->snapshot, job.snapshot, sizeof(ws->snapshot));
        ws->is_published = false;
    }
    if (r == 0) {
        ws->n_other_commits = job.n_other_commits;
        ws->phase = WORKSPACE_FINISHED;
        r = workspace_save(ws, err);
    }
    if (r == 0) {
        *out = (struct harvest){
            .oddities = ptr_steal(&job.changes.oddities),
            .n_oddities = job.changes.n_oddities,
            .is_changed = strcmp(ws->snapshot, ws->base) != 0 || ws->n_other_commits > 0,
        };
        job.changes.n_oddities = 0;
    }
    changes_finish(&job.changes);
    if (r == 0)
        return 0;
    ws->phase = WORKSPACE_READY; /* an older harvest lacks what was refused */
    if (!ws->is_published)       /* and its objects are no longer in the quarantine */
        ws->tip[0] = ws->snapshot[0] = '\0';
    (void)workspace_save(ws, NULL); /* the first failure is the one to report */
    return r;
}

int harvest_wrap(const struct workspace *ws, int code, struct carrel_error *err)
{
    return err_wrap(err, code, "the result of run '%s' was refused (its files are in %s)",
            ws->run, ws->path);
}

int objects_dir_path(
        const struct worktree *worktree, char path[static PATH_MAX], struct carrel_error *err)
{
    int n = snprintf(path, PATH_MAX, "%s/objects", worktree->ws->path);

    return n < PATH_MAX ? 0 : err_set_errno(err, -ENAMETOOLONG, "'%s'", worktree->ws->path);
}

int objects_dir_sum_up(const struct worktree *worktree, const char *from, const char *to,
        struct harvest_summary *out, struct carrel_error *err)
{
    const struct harvest_limits limits = HARVEST_LIMITS_INIT;
    char path[PATH_MAX];

    if (strcmp(from, to) == 0)
        return 0;
    int r = objects_dir_path(worktree, path, err);
    return r < 0 ? r : harvest_summarize(worktree->repo, path, from, to, &limits, out, err);
}
