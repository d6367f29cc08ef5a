/* swap.c - exchanges files by rename, with a journal to undo it. */
#include "workspace/apply/swap.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/tree.h"
#include "git/beneath.h"
#include "git/gitdir.h"
#include "workspace/apply/swap_copy.h"
#include "workspace/apply/swap_journal.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#define INDEX_WAIT_MS 2000
#define TOP_STAGE "." SWAP_DIR "-"

static int open_dir_at(int dir, const char *path)
{
    int fd = openat(dir, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    return fd < 0 ? -errno : fd;
}

static bool is_same_mount(int a, int b)
{
    struct statx one;
    struct statx other;

    return statx(a, "", AT_EMPTY_PATH, STATX_MNT_ID, &one) == 0 &&
           statx(b, "", AT_EMPTY_PATH, STATX_MNT_ID, &other) == 0 &&
           (one.stx_mask & other.stx_mask & STATX_MNT_ID) != 0 &&
           one.stx_mnt_id == other.stx_mnt_id;
}

/* index.lock is ours exactly if it is the same file as our `lock`. */
static bool has_index_lock(const struct swap *swap)
{
    struct stat ours;
    struct stat theirs;

    return fstatat(swap->dir, "lock", &ours, AT_SYMLINK_NOFOLLOW) == 0 &&
           fstatat(swap->git_dir, "index.lock", &theirs, AT_SYMLINK_NOFOLLOW) == 0 &&
           ours.st_ino == theirs.st_ino && ours.st_dev == theirs.st_dev;
}

/*
 * The name of the stage in the work tree, if it has one: the link `stage` holds it. The name is
 * random, so what is removed by it is never a file of the user.
 */
static bool has_top_stage(const struct swap *swap, char name[static NAME_MAX])
{
    ssize_t len = readlinkat(swap->dir, "stage", name, NAME_MAX - 1);

    name[len > 0 ? len : 0] = '\0';
    return len > 0 && path_is_name(name) && strncmp(name, TOP_STAGE, strlen(TOP_STAGE)) == 0;
}

/*
 * Removes everything of ours. The lock is removed last, except the directory that proves that
 * it is ours.
 */
static int clean(struct swap *swap, struct carrel_error *err)
{
    char stage[NAME_MAX];
    int r = has_top_stage(swap, stage) ? tree_remove(swap->top, stage, err) : 0;

    if (r == 0 && has_index_lock(swap) && unlinkat(swap->git_dir, "index.lock", 0) < 0)
        r = err_set_errno(err, -errno, "remove our 'index.lock'");
    if (r == 0)
        r = tree_remove(swap->git_dir, SWAP_DIR, err);
    return r;
}

/*
 * Once `done` exists: renames the new index, if there is one, into place. Only under our lock:
 * without it another process may have written a newer one.
 */
static int install_index(struct swap *swap, struct carrel_error *err)
{
    if (has_index_lock(swap) && renameat(swap->dir, "index", swap->git_dir, "index") < 0 &&
            errno != ENOENT)
        return err_set_errno(err, -errno, "replace the index");
    return 0;
}

static int mark_done(struct swap *swap, struct carrel_error *err)
{
    if (renameat(swap->dir, "journal", swap->dir, "done") < 0)
        return err_set_errno(err, -errno, "finish the journal of an apply");
    swap->is_begun = false;
    return 0;
}

/* The new index, which git has written, to where it can be renamed into place. */
static int bring_index(struct swap *swap, struct carrel_error *err)
{
    int r = swap_copy(swap->draft.dir, swap->dir, "index");

    return r < 0 && r != -ENOENT ? err_set_errno(err, r, "copy the new index") : 0;
}

int swap_finish(struct swap *swap, struct carrel_error *err)
{
    int r = bring_index(swap, err);

    if (r == 0)
        r = mark_done(swap, err);
    if (r == 0)
        r = install_index(swap, err);
    if (r == 0)
        r = clean(swap, err);
    return r;
}

static int undo(struct swap *swap, struct carrel_error *err)
{
    struct swap_journal journal = { 0 };
    int r = swap_journal_read(swap->dir, &journal, err);

    for (size_t i = journal.n; r == 0 && i-- > 0;)
        r = swap_journal_undo(&journal.items[i], swap->top, swap->stage, err);
    swap_journal_finish(&journal);
    if (r == 0 && unlinkat(swap->dir, "journal", 0) < 0)
        r = err_set_errno(err, -errno, "remove the journal of an apply");
    if (r == 0)
        swap->is_begun = false;
    return r;
}

void swap_free(struct swap *swap)
{
    if (!swap)
        return;
    /* On failure the journal is kept: the next recovery reports why. */
    if (swap->dir >= 0 && (!swap->is_begun || undo(swap, NULL) == 0))
        (void)clean(swap, NULL);
    fd_close(swap->stage);
    fd_close(swap->dir);
    fd_close(swap->top);
    fd_close(swap->git_dir); /* the flock */
    store_drop(&swap->store, &swap->draft);
    store_finish(swap->store);
    free(swap->new);
    free(swap->index);
    free(swap);
}

/* Closes without removing anything. */
static void forget(struct swap *swap)
{
    if (!swap)
        return;
    fd_close(swap->dir);
    swap->dir = -1;
    swap_free(swap);
}
DEFINE_AUTO(struct swap *, forget)

static int hold(const struct repo *repo, struct swap **out, struct carrel_error *err)
{
    if (!repo->top)
        return err_set(err, -EINVAL, "the repository is bare: it has no files to apply to");
    AUTO(forget) struct swap *swap = calloc(1, sizeof(*swap));
    if (!swap)
        return err_set_errno(err, -ENOMEM, "apply");
    swap->git_dir = swap->top = swap->dir = swap->stage = -1;
    swap->store = STORE_INIT;
    swap->draft = STORE_DRAFT_INIT;

    swap->git_dir = gitdir_reopen(repo->git_dir);
    if (swap->git_dir < 0)
        return err_set_errno(err, swap->git_dir, "open '%s'", repo->git_dir);
    swap->top = gitdir_reopen(repo->top);
    if (swap->top < 0)
        return err_set_errno(err, swap->top, "open '%s'", repo->top);
    if (flock(swap->git_dir, LOCK_EX | LOCK_NB) < 0)
        return err_set(err, errno == EWOULDBLOCK ? -EBUSY : -errno,
                "another carrel is changing '%s': try again when it has finished", repo->top);
    *out = ptr_steal(&swap);
    return 0;
}

/* Opens the directory of new/ and old/: beside the journal unless that is on another mount. */
static int open_stage(struct swap *swap)
{
    char name[NAME_MAX];
    int fd = has_top_stage(swap, name) ? open_dir_at(swap->top, name)
                                       : open_dir_at(swap->dir, ".");

    swap->stage = fd < 0 ? -1 : fd;
    return fd < 0 ? fd : 0;
}

/* Whether HEAD is the final commit that the journal names. */
static bool is_at(const struct repo *repo, const char *commit)
{
    char head[OID_MAX];

    return commit[0] && repo_resolve(repo, "HEAD", head, NULL) == 0 &&
           strcmp(head, commit) == 0;
}

static int recover_held(const struct repo *repo, struct swap *swap, struct carrel_error *err)
{
    char commit[OID_MAX];

    swap->dir = open_dir_at(swap->git_dir, SWAP_DIR);
    if (swap->dir == -ENOENT)
        return 0;
    if (swap->dir < 0)
        return err_set_errno(err, swap->dir, "open '%s/" SWAP_DIR "'", repo->git_dir);

    int r = 0;
    if (faccessat(swap->dir, "journal", F_OK, 0) == 0) {
        r = open_stage(swap);
        if (r < 0)
            return err_set_errno(err, r, "open the files of an apply that did not finish");
        r = swap_journal_commit(swap->dir, commit, err);
        if (r == 0)
            r = is_at(repo, commit) ? mark_done(swap, err) : undo(swap, err);
    }
    if (r == 0 && faccessat(swap->dir, "done", F_OK, 0) == 0)
        r = install_index(swap, err);
    if (r == 0)
        r = clean(swap, err);
    return r < 0 ? r : 1;
}

int swap_recover(const struct repo *repo, struct carrel_error *err)
{
    AUTO(forget) struct swap *swap = NULL;
    int r = repo->top ? hold(repo, &swap, err) : 0;

    if (!swap)
        return r;
    r = recover_held(repo, swap, err);
    return r < 0 ? err_wrap(err, r, "recover '%s' after an interrupted apply", repo->top) : r;
}

/* git's commands that change the index hold this lock for moments, an editor for long. */
static int take_index_lock(struct swap *swap, struct carrel_error *err)
{
    const struct timespec pause = { .tv_nsec = 10 * 1000 * 1000 };
    uint64_t deadline = clock_ns() + UINT64_C(1000000) * INDEX_WAIT_MS;

    while (linkat(swap->dir, "lock", swap->git_dir, "index.lock", 0) < 0) {
        if (errno != EEXIST)
            return err_set_errno(err, -errno, "make 'index.lock'");
        if (clock_ns() > deadline)
            return err_set(err, -EBUSY,
                    "git is at work in this tree ('index.lock' exists): end it, or remove the "
                    "file if no git runs any more");
        (void)nanosleep(&pause, NULL);
    }
    return 0;
}

/*
 * Creates the stage beside the journal, or in the work tree if only that is on its file system.
 */
static int make_stage(struct swap *swap)
{
    char name[NAME_MAX];
    int r;

    if (!is_same_mount(swap->dir, swap->top)) {
        (void)snprintf(name, sizeof(name), TOP_STAGE "%d-%" PRIx64, (int)getpid(), clock_ns());
        if (symlinkat(name, swap->dir, "stage") < 0)
            return -errno;
        if (mkdirat(swap->top, name, 0700) < 0) {
            r = -errno;
            (void)unlinkat(swap->dir, "stage", 0); /* another process has the name */
            return r;
        }
    }
    r = open_stage(swap);
    if (r == 0 &&
            (mkdirat(swap->stage, "new", 0700) < 0 || mkdirat(swap->stage, "old", 0700) < 0))
        r = -errno;
    return r;
}

static int make_parts(struct swap *swap, const struct repo *repo, struct carrel_error *err)
{
    if (mkdirat(swap->git_dir, SWAP_DIR, 0700) < 0)
        return err_set_errno(err, -errno, "make '%s/" SWAP_DIR "'", repo->git_dir);
    swap->dir = open_dir_at(swap->git_dir, SWAP_DIR);
    if (swap->dir < 0)
        return err_set_errno(err, swap->dir, "open '%s/" SWAP_DIR "'", repo->git_dir);
    AUTO(fd_close)
    int lock = openat(swap->dir, "lock", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (lock < 0)
        return err_set_errno(err, -errno, "write in '%s/" SWAP_DIR "'", repo->git_dir);
    int r = take_index_lock(swap, err);
    if (r < 0)
        return r;
    r = make_stage(swap);
    return r < 0 ? err_set_errno(err, r, "make a place for the new files") : 0;
}

/* The place where git works. What killed processes left there is removed first. */
static int make_draft(struct swap *swap, const char *state, struct carrel_error *err)
{
    char path[PATH_MAX];

    if ((size_t)snprintf(path, sizeof(path), "%s/applies", state) >= sizeof(path))
        return err_set_errno(err, -ENAMETOOLONG, "'%s'", state);
    int r = store_make(path, &swap->store, err);
    if (r == 0)
        (void)store_sweep(&swap->store, NULL); /* the next one tries again */
    if (r == 0)
        r = store_draft(&swap->store, &swap->draft, err);
    if (r < 0)
        return r;
    swap->path = swap->draft.path;
    if (fchmod(swap->draft.dir, 0700) < 0 || mkdirat(swap->draft.dir, "new", 0700) < 0)
        return err_set_errno(err, -errno, "make '%s/new'", swap->path);
    if (asprintf(&swap->new, "%s/new", swap->path) < 0 ||
            asprintf(&swap->index, "%s/index", swap->path) < 0)
        return err_set_errno(err, -ENOMEM, "apply");
    return 0;
}

int swap_open(
        const struct repo *repo, const char *state, struct swap **out, struct carrel_error *err)
{
    AUTO(forget) struct swap *swap = NULL;
    int r = hold(repo, &swap, err);
    if (!swap)
        return r;
    r = recover_held(repo, swap, err);
    if (r < 0)
        return err_wrap(err, r, "recover '%s' after an interrupted apply", repo->top);
    fd_close(swap->dir);
    fd_close(swap->stage);
    swap->dir = swap->stage = -1;

    r = make_draft(swap, state, err);
    if (r < 0)
        return r;
    r = make_parts(swap, repo, err);
    if (r < 0) {
        swap_free(ptr_steal(&swap));
        return r;
    }
    *out = ptr_steal(&swap);
    return 0;
}

static bool is_unchanged(const struct stat *a, const struct stat *b)
{
    return a->st_ino == b->st_ino && a->st_size == b->st_size && a->st_mode == b->st_mode &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* The file that was taken out must be the one that the plan has seen. */
static int check_old(int dir, const char *name, const struct stat *was)
{
    struct stat st;

    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    return is_unchanged(&st, was) ? 0 : -ESTALE;
}

static int take_out(struct swap *swap, const struct swap_item *item, size_t number)
{
    char old[32];
    const char *name;
    AUTO(fd_close) int parent = beneath_parent(swap->top, item->path, &name);
    if (parent < 0)
        return parent;

    AUTO(fd_close) int taken = swap_part(swap->stage, "old");
    if (taken < 0)
        return taken;

    (void)snprintf(old, sizeof(old), "%zu", number);
    if (renameat(parent, name, taken, old) < 0)
        return -errno;
    beneath_prune_parents(swap->top, item->path);
    return check_old(taken, old, &item->was);
}

/* For file systems without RENAME_EXCHANGE: the old file gets a second name first. */
static int put_over(struct swap *swap, int from, int to, const char *name,
        const struct swap_item *item, size_t number)
{
    char old[32];

    if (renameat2(from, name, to, name, RENAME_EXCHANGE) == 0)
        return check_old(from, name, &item->was);
    if (errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP)
        return -errno;
    AUTO(fd_close) int taken = swap_part(swap->stage, "old");
    if (taken < 0)
        return taken;
    (void)snprintf(old, sizeof(old), "%zu", number);
    if (linkat(to, name, taken, old, 0) < 0)
        return -errno;
    int r = check_old(taken, old, &item->was);
    if (r < 0)
        return r;
    return renameat(from, name, to, name) < 0 ? -errno : 0;
}

/* For a path without a file; an empty directory counts as none, as for git. */
static int put_new(int from, int to, const char *name)
{
    (void)unlinkat(to, name, AT_REMOVEDIR);
    if (renameat2(from, name, to, name, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP)
        return -errno;
    if (linkat(from, name, to, name, 0) < 0)
        return -errno;
    return unlinkat(from, name, 0) < 0 ? -errno : 0;
}

static int put_in(struct swap *swap, const struct swap_item *item, size_t number)
{
    const char *name;
    AUTO(fd_close) int new = swap_part(swap->stage, "new");
    if (new < 0)
        return new;
    AUTO(fd_close) int from = beneath_parent(new, item->path, &name);
    if (from < 0)
        return from;
    AUTO(fd_close) int to = beneath_make_parent(swap->top, item->path, &name);
    if (to < 0)
        return to;
    return item->is_there ? put_over(swap, from, to, name, item, number)
                          : put_new(from, to, name);
}

/* Errors that mean that the tree has changed since the plan was made. */
static bool is_stale(int code)
{
    return code == -ESTALE || code == -EEXIST || code == -ENOENT || code == -ENOTDIR ||
           code == -EISDIR || code == -ENOTEMPTY || code == -ELOOP || code == -EXDEV;
}

/*
 * Set before the exchange, so that a private file is never readable by others. If the group
 * cannot be kept (only root can set it), the group that the file gets instead must not have
 * more rights than others.
 */
static int keep_mode(int new, const struct swap_item *item)
{
    mode_t mode = item->mode;
    const char *name;
    AUTO(fd_close) int parent = beneath_parent(new, item->path, &name);
    if (parent < 0)
        return parent;
    struct stat st;
    AUTO(fd_close)
    int fd = openat(parent, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        return -errno;

    if (st.st_gid != item->was.st_gid && fchown(fd, (uid_t)-1, item->was.st_gid) < 0)
        mode &= (mode & 0007) << 3 | 0707;
    if (st.st_uid != item->was.st_uid)
        (void)fchown(fd, item->was.st_uid,
                (gid_t)-1); /* else the caller's, as for files that git writes */
    return fchmod(fd, mode) < 0 ? -errno : 0;
}

static int keep_modes(
        struct swap *swap, const struct swap_item *items, size_t n, struct carrel_error *err)
{
    AUTO(fd_close) int new = swap_part(swap->stage, "new");
    if (new < 0)
        return err_set_errno(err, new, "open the new files");
    for (size_t i = 0; i < n; i++) {
        int r = items[i].keeps_mode ? keep_mode(new, &items[i]) : 0;
        if (r < 0)
            return err_set_errno(err, r, "keep the permissions of '%s'", items[i].path);
    }
    return 0;
}

/* Copies what git wrote to the file system of the tree, from where a rename can put it in. */
static int bring(
        struct swap *swap, const struct swap_item *items, size_t n, struct carrel_error *err)
{
    AUTO(fd_close) int from = swap_part(swap->draft.dir, "new");
    AUTO(fd_close) int to = swap_part(swap->stage, "new");
    int r = from < 0 ? from : to < 0 ? to : 0;

    if (r < 0)
        return err_set_errno(err, r, "open the new files");
    for (size_t i = 0; i < n; i++) {
        r = items[i].kind == SWAP_PUT ? swap_copy_path(from, to, items[i].path) : 0;
        if (r < 0)
            return err_set_errno(err, r, "copy the new '%s'", items[i].path);
    }
    return 0;
}

int swap_exchange(struct swap *swap, const struct swap_item *items, size_t n,
        const char *commit, size_t *culprit, struct carrel_error *err)
{
    AUTO(free) size_t *order = swap_journal_order(items, n);
    if (!order && n > 0)
        return err_set_errno(err, -ENOMEM, "apply");
    int r = bring(swap, items, n, err);
    if (r == 0)
        r = keep_modes(swap, items, n, err);
    if (r < 0)
        return r;
    r = swap_journal_write(swap->dir, swap->stage, items, order, n, commit, err);
    if (r < 0)
        return r;
    swap->is_begun = true;

    for (size_t i = 0; i < n; i++) {
        const struct swap_item *item = &items[order[i]];
        r = item->kind == SWAP_REMOVE ? take_out(swap, item, i) : put_in(swap, item, i);
        if (r == 0)
            continue;
        *culprit = order[i];
        int undone = undo(swap, err);
        if (undone < 0)
            return err_wrap(err, undone, "put back what was already applied");
        return err_set_errno(err, is_stale(r) ? -ESTALE : r, "apply '%s'", item->path);
    }
    return 0;
}
