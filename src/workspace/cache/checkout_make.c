/* checkout_make.c - makes entries of the cache. */
#include "base/aside.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/sha256.h"
#include "base/tree.h"
#include "git/format/index.h"
#include "git/name.h"
#include "git/scope.h"
#include "workspace/cache/checkout.h"
#include "workspace/cache/fill.h"
#include "workspace/cache/monitor.h"
#include "workspace/private.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

void checkout_draft_free(struct checkout_draft *draft)
{
    if (!draft)
        return;
    store_drop(&draft->store, &draft->entry);
    checkout_free(draft->below);
    fd_close(draft->claim);
    store_finish(draft->store);
    free(draft->name);
    free(draft);
}

static struct checkout_draft *draft_new(const struct repo *repo, const char *commit)
{
    AUTO(checkout_draft_free) struct checkout_draft *draft = calloc(1, sizeof(*draft));

    if (!draft)
        return NULL;
    draft->store = STORE_INIT;
    draft->entry = STORE_DRAFT_INIT;
    draft->claim = -1;
    draft->name = checkout_name(repo, commit);
    if (!draft->name)
        return NULL;
    draft->commit = strchr(draft->name, '/') + 1;
    return ptr_steal(&draft);
}

/* Removes an entry that is not whole; a process that reads its facts just now is waited for. */
static int remove_broken(const struct checkout_draft *draft, struct carrel_error *err)
{
    AUTO(fd_close) int dir = store_hold(&draft->store, draft->name);

    if (dir < 0)
        return dir == -ENOENT ? 0 : err_set_errno(err, dir, "open '%s'", draft->name);
    if (flock(dir, LOCK_EX) < 0)
        return err_set_errno(err, -errno, "lock '%s'", draft->name);
    int r = store_remove(&draft->store, draft->name, dir, err);
    return r == -ENOENT ? 0 : r;
}

/* A tag or a tree would do for a checkout; a branch can only be at a commit. */
static int tree_of(const struct repo *repo, const char *commit, char tree[static OID_MAX],
        struct carrel_error *err)
{
    const struct git git = repo_user_git(repo);
    AUTO(buf_finish) struct buf text = BUF_INIT(256);
    AUTO(free) char *itself = checkout_format("%s^{commit}", commit);
    AUTO(free) char *rev = checkout_format("%s^{tree}", commit);
    struct git_io io = GIT_IO_INIT;

    if (!itself || !rev)
        return err_set_errno(err, -ENOMEM, "check out");
    io.output = &text;
    int r = fill_git(&git, GIT_ARGS("rev-parse", "--revs-only", itself, rev), &io, err);
    size_t len = strlen(commit);
    if (r < 0 || text.len <= len + 1)
        return err_set(err, -ENOENT, "commit %s is not in the repository", commit);
    if (strncmp(text.data, commit, len) != 0)
        return err_set(err, -EINVAL, "%s is not a commit; its commit is %.*s", commit, (int)len,
                text.data);
    (void)snprintf(tree, OID_MAX, "%.64s", text.data + len + 1);
    tree[strcspn(tree, "\n")] = '\0';
    return name_is_oid(tree) ? 0 : err_set(err, -EBADMSG, "git named no tree for %s", commit);
}

/*
 * The user's filters must not run on what a run committed: their input, and what they are told
 * of the paths, would be the run's. Trees without them are not mixed with others.
 */
static int turn_filters_off(struct fill *fill, struct carrel_error *err)
{
    const struct git git = repo_user_git(fill->repo);
    AUTO(buf_finish) struct buf name = BUF_INIT(256);
    int r = scope_no_filters(&git, &fill->no_filters, err);

    if (r < 0 || !fill->no_filters)
        return r;
    buf_addf(&name, "%s without filters", fill->settings.digest);
    sha256_hex(name.data, name.len, fill->settings.digest);
    return 0;
}

/* A layer where one will do, else the whole tree. */
static int fill_either(struct fill *fill, const char *state, struct checkout_draft *draft,
        struct carrel_error *err)
{
    int r = conversion_of_settings(fill->repo, &fill->settings, err);
    if (r == 0 && fill->owner.is_of_run)
        r = turn_filters_off(fill, err);
    if (r == 0)
        r = tree_of(fill->repo, fill->commit, fill->facts.tree, err);
    if (r < 0)
        return r;
    (void)snprintf(fill->facts.conversion, sizeof(fill->facts.conversion), "%s",
            fill->settings.digest);
    fill->facts.uid = fill->owner.uid;
    fill->facts.gid = fill->owner.gid;
    if (kernel_boot_id(fill->facts.boot, NULL) < 0)
        fill->facts.boot[0] = '\0';

    r = fill_layer(fill, state, &draft->below, err);
    if (r < 0) {
        /* A file system without whiteouts, say. The whole tree costs more and is as good. */
        struct checkout_facts facts = fill->facts;
        (void)tree_remove(fill->dir, "layer", NULL);
        (void)tree_remove(fill->dir, "git", NULL);
        buf_clear(&fill->indexes);
        facts.files = facts.bytes = 0;
        fill->facts = facts;
    }
    if (r <= 0)
        r = fill_base(fill, err);
    return r < 0 ? r : 0;
}

static int fill_draft(struct fill *fill, const char *state, struct checkout_draft *draft,
        struct carrel_error *err)
{
    int r = fill_either(fill, state, draft, err);
    if (r == 0)
        r = fill_settle(fill, err);
    return r == 0 ? checkout_facts_write(fill->dir, &fill->facts, err) : r;
}

/* The claim, and then a look whether another process was quicker. */
static int begin(const char *state, const struct repo *repo, struct checkout_draft *draft,
        struct carrel_error *err)
{
    AUTO(checkout_free) struct checkout *found = NULL;
    AUTO(free) char *path = checkout_format("%s/checkouts", state);
    int r = path ? store_make(path, &draft->store, err)
                 : err_set_errno(err, -ENOMEM, "check out");

    if (r == 0)
        r = draft->claim = store_claim(&draft->store, draft->name, err);
    if (r < 0)
        return r;
    if (checkout_find(state, repo, draft->commit, &found, NULL) == 0)
        return err_set(err, -EEXIST, "commit %s is in the cache by now", draft->commit);
    r = remove_broken(draft, err);
    return r < 0 ? r : store_draft(&draft->store, &draft->entry, err);
}

/* What checkout_fill() was called with. */
struct filling {
    const char *state;
    const struct repo *repo;
    struct fill *fill;
    struct checkout_draft **out;
    struct carrel_error *err;
};

static int fill_aside(void *context)
{
    const struct filling *filling = context;
    const char *state = filling->state;
    const struct repo *repo = filling->repo;
    struct fill *fill = filling->fill;
    struct carrel_error *err = filling->err;

    AUTO(checkout_draft_free) struct checkout_draft *draft = draft_new(repo, fill->commit);
    if (!draft)
        return err_set_errno(err, -ENOMEM, "check out");

    int r = begin(state, repo, draft, err);
    if (r < 0)
        return r;
    fill->store = &draft->store;
    fill->path = draft->entry.path;
    fill->dir = draft->entry.dir;
    r = fill_draft(fill, state, draft, err);
    if (r < 0)
        return err_wrap(err, r, "check out %s", fill->commit);
    draft->n_files = fill->facts.files;
    *filling->out = ptr_steal(&draft);
    return 0;
}

int checkout_fill(const char *state, const struct repo *repo, const char *commit,
        struct checkout_owner owner,
        void (*progress)(uint64_t done, uint64_t total, void *context), void *context,
        struct checkout_draft **out, struct carrel_error *err)
{
    struct fill fill = {
        .repo = repo,
        .commit = commit,
        .owner = owner,
        .dir = -1,
        .progress = progress,
        .context = context,
        .indexes = BUF_INIT((size_t)1 << 20),
        .module_objects = BUF_INIT((size_t)1 << 24),
    };

    if (!name_is_oid(commit))
        return err_set(err, -EINVAL, "check out: this is not the id of a commit");
    /* The tree does not depend on the user that fills it, and a run under another id must be
     * able to read.
     */
    struct filling filling = { state, repo, &fill, out, err };
    int r = aside_run(022, fill_aside, &filling, err);
    scope_free_settings(fill.no_filters);
    buf_finish(fill.indexes);
    buf_finish(fill.module_objects);
    return r;
}

/* A better index comes from a sandbox: it must be sound, and hold exactly the commit. */
static int take_index(const struct repo *repo, struct checkout_draft *draft, int fd,
        int git_dir, struct carrel_error *err)
{
    AUTO(index_free) struct index *index = NULL;
    AUTO(free) char *path = checkout_format("%s/git/index.offered", draft->entry.path);
    struct git git = repo_git(repo);
    struct git_io io = GIT_IO_INIT;
    struct stat st;

    int r = index_read(fd, repo->is_sha256, &index, err);
    if (r < 0)
        return r;
    if (!path || fstat(fd, &st) < 0)
        return err_set_errno(err, -ENOMEM, "take an index");
    r = index_write(index, git_dir, "index.offered", err);
    if (r < 0)
        return r;
    git.index_file = path;
    r = git_run(
            &git, GIT_ARGS("diff-index", "--cached", "--quiet", draft->commit, "--"), &io, err);
    const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, st.st_mtim };
    if (r > 0)
        r = err_set(err, -EBADMSG, "the offered index is not that of the commit");
    if (r == 0 && (utimensat(git_dir, "index.offered", times, 0) < 0 ||
                          renameat(git_dir, "index.offered", git_dir, "index") < 0))
        r = err_set_errno(err, -errno, "take an index");
    if (r < 0)
        (void)unlinkat(git_dir, "index.offered", 0); /* the draft's own is still there */
    return r;
}

/*
 * What a run needs to have a monitor: the index as it begins, which the monitor compares with,
 * and the settings, which only such a run finds where the configuration looks for them.
 */
static int add_monitor(int dir, int git_dir, bool is_settled, struct carrel_error *err)
{
    static const char settings[] = "[core]\n\tfsmonitor = \"" PRIVATE_MONITOR "\"\n";
    static const char include[] = "[include]\n\tpath = \"" PRIVATE_MONITOR_CONFIG "\"\n";
    struct checkout_facts facts = { 0 };
    AUTO(fd_close) int config = openat(git_dir, "config", O_WRONLY | O_APPEND | O_CLOEXEC);

    int r = config < 0 ? -errno : fd_write_all(config, include, sizeof(include) - 1);
    if (r == 0 && linkat(git_dir, "index", git_dir, MONITOR_PRISTINE, 0) < 0)
        r = -errno;
    if (r == 0)
        r = fd_write_new_text(dir, "monitor", settings);
    if (r == 0 && is_settled)
        r = checkout_facts_read(dir, &facts);
    if (r < 0)
        return err_set_errno(err, r, "prepare for a monitor");
    facts.has_monitor = true;
    return is_settled ? checkout_facts_write(dir, &facts, err) : 0;
}

int checkout_publish(const char *state, const struct repo *repo, struct checkout_draft *draft,
        int index, struct checkout **out, struct carrel_error *err)
{
    int dir = draft->entry.dir;
    AUTO(fd_close) int git_dir = openat(dir, "git", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    int r = git_dir < 0 ? err_set_errno(err, -errno, "open 'git'") : 0;
    if (r == 0 && index >= 0)
        r = take_index(repo, draft, index, git_dir, err);
    if (r == 0)
        r = add_monitor(dir, git_dir, index >= 0, err);
    if (r == 0)
        r = store_publish(&draft->store, &draft->entry, draft->name, err);
    if (r < 0)
        return err_wrap(err, r, "publish the checkout of %s", draft->commit);
    return checkout_find(state, repo, draft->commit, out, err);
}
