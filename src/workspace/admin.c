/*
 * admin.c - admin dirs, written and removed by our own hands.
 *
 * git would need a process for each, `git worktree add` wants a checkout, and parallel
 * `git worktree remove` fails now and then because it reads the directory while others delete.
 *
 * One rename brings an admin dir and one takes it away. Made in its place it would for a moment
 * be one without `locked` and `gitdir`, which `git worktree prune` (any gc runs it) removes at
 * once, and goes on removing while we fill it.
 */
#include "workspace/admin.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/tree.h"
#include "git/name.h"
#include "git/newfile.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PREFIX "carrel-"
#define ID_MAX (sizeof(PREFIX) + 2 * NAME_ID_MAX + 2)
#define REASON "carrel run "

#define ASIDE_MAX (ID_MAX + 4)

/* How often we begin again when the removal of a last neighbour came between. */
#define MAX_TRIES 100

static void make_id(const char *task, const char *run, char id[static ID_MAX])
{
    (void)snprintf(id, ID_MAX, PREFIX "%s+%s", task, run);
}

/* Where it is filled and emptied, out of git's sight: in the git dir itself, which is the one
 * directory that is surely on the same file system. */
static void make_aside(const char *task, const char *run, char aside[static ASIDE_MAX])
{
    (void)snprintf(aside, ASIDE_MAX, PREFIX "%s+%s.new", task, run);
}

/* Takes "carrel-<task>+<run>" apart. False for a worktree that is none of ours. */
static bool split_id(const char *id, char *task, char *run)
{
    const char *plus = strchr(id, '+');
    size_t skip = strlen(PREFIX);

    if (strncmp(id, PREFIX, skip) != 0 || !plus || plus < id + skip ||
            (size_t)(plus - id) - skip > NAME_ID_MAX || strlen(plus + 1) > NAME_ID_MAX)
        return false;
    (void)snprintf(task, NAME_ID_MAX + 1, "%.*s", (int)((size_t)(plus - id) - skip), id + skip);
    (void)snprintf(run, NAME_ID_MAX + 1, "%s", plus + 1);
    return name_check_id(task, "task", NULL) == 0 && name_check_id(run, "run", NULL) == 0;
}

static int open_common(const struct repo *repo)
{
    int fd = open(repo->common_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    return fd < 0 ? -errno : fd;
}

static int open_worktrees(const struct repo *repo)
{
    AUTO(fd_close) int common = open_common(repo);
    if (common < 0)
        return common;
    int fd = openat(common, "worktrees", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

struct admin_text {
    char locked[sizeof(REASON) + NAME_ID_MAX + 1];
    char head[sizeof("ref: refs/heads/\n") + NAME_BRANCH_MAX];
    char gitdir[PATH_MAX + 1];
};

static int fill(int dir, const struct admin_text *text)
{
    int r = newfile_write_text(dir, "locked", text->locked);

    if (r == 0)
        r = newfile_write_text(dir, "commondir", "../..\n");
    if (r == 0)
        r = newfile_write_text(dir, "HEAD", text->head);
    if (r == 0)
        r = newfile_write_text(dir, "gitdir", text->gitdir);
    return r;
}

/* Fills the directory `aside`. What a crash left there under that name is of nobody any more:
 * only who has the run's branch comes here. */
static int prepare(int common, const char *aside, const struct admin_text *text)
{
    int r = tree_remove(common, aside, NULL);
    if (r < 0)
        return r;
    if (mkdirat(common, aside, 0777) < 0)
        return -errno;
    AUTO(fd_close)
    int dir = openat(common, aside, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return dir < 0 ? -errno : fill(dir, text);
}

/* Moves it to its place; -EEXIST when something is there. `worktrees` goes with the last admin
 * dir in it, maybe between our two steps. */
static int put_in_place(int common, const char *aside, const char *id)
{
    char to[sizeof("worktrees/") + ID_MAX];

    (void)snprintf(to, sizeof(to), "worktrees/%s", id);
    for (int i = 0; i < MAX_TRIES; i++) {
        if (mkdirat(common, "worktrees", 0777) < 0 && errno != EEXIST)
            return -errno;
        if (renameat(common, aside, common, to) == 0)
            return 0;
        if (errno != ENOENT)
            return errno == ENOTEMPTY ? -EEXIST : -errno;
    }
    return -ENOENT;
}

int admin_create(const struct repo *repo, const char *task, const char *run,
        const char *worktree_git_file, const char *branch, struct carrel_error *err)
{
    struct admin_text text;
    char aside[ASIDE_MAX];
    char id[ID_MAX];

    if (strchr(worktree_git_file, '\n') || strlen(worktree_git_file) + 2 > sizeof(text.gitdir))
        return err_set(err, -EINVAL,
                "git cannot record a worktree below a directory with a newline in its name, or "
                "below one that is too long: choose another state directory");
    (void)snprintf(text.locked, sizeof(text.locked), REASON "%s\n", run);
    (void)snprintf(text.head, sizeof(text.head), "ref: refs/heads/%s\n", branch);
    (void)snprintf(text.gitdir, sizeof(text.gitdir), "%s\n", worktree_git_file);
    make_id(task, run, id);

    AUTO(fd_close) int common = open_common(repo);
    if (common < 0)
        return err_set_errno(err, common, "open '%s'", repo->common_dir);
    make_aside(task, run, aside);
    int r = prepare(common, aside, &text);
    if (r == 0)
        r = put_in_place(common, aside, id);
    if (r < 0)
        (void)tree_remove(common, aside, NULL); /* what stays, the sweep takes; r says why */
    if (r == -EEXIST)
        return err_set(err, r, "the repository already has a worktree '%s'", id);
    if (r < 0)
        return err_set_errno(err, r, "create '%s/worktrees/%s'", repo->common_dir, id);
    return 0;
}

int admin_remove(
        const struct repo *repo, const char *task, const char *run, struct carrel_error *err)
{
    char aside[ASIDE_MAX];
    char from[sizeof("worktrees/") + ID_MAX];
    char id[ID_MAX];

    make_id(task, run, id);
    make_aside(task, run, aside);
    (void)snprintf(from, sizeof(from), "worktrees/%s", id);
    AUTO(fd_close) int common = open_common(repo);
    if (common < 0)
        return err_set_errno(err, common, "open '%s'", repo->common_dir);
    int r = tree_remove(common, aside, err); /* left by a crash */
    if (r == 0 && renameat(common, from, common, aside) < 0 && errno != ENOENT)
        r = err_set_errno(err, -errno, "rename");
    if (r == 0)
        r = tree_remove(common, aside, err);
    if (r < 0)
        return err_wrap(err, r, "remove '%s/%s'", repo->common_dir, from);
    (void)unlinkat(common, "worktrees", AT_REMOVEDIR); /* others are in it: it stays */
    return 0;
}

int admin_path(const struct repo *repo, const char *task, const char *run, char *path,
        size_t size, struct carrel_error *err)
{
    char id[ID_MAX];

    make_id(task, run, id);
    int n = snprintf(path, size, "%s/worktrees/%s", repo->common_dir, id);
    if (n < 0 || (size_t)n >= size)
        return err_set_errno(err, -ENAMETOOLONG, "'%s/worktrees/%s'", repo->common_dir, id);
    return 0;
}

int admin_gitdir(const struct repo *repo, const char *task, const char *run, char *path,
        size_t size, struct carrel_error *err)
{
    char id[ID_MAX];

    make_id(task, run, id);
    AUTO(fd_close) int worktrees = open_worktrees(repo);
    AUTO(fd_close)
    int dir = worktrees < 0
                      ? worktrees
                      : openat(worktrees, id, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0)
        return err_set_errno(err, worktrees < 0 ? worktrees : -errno, "open '%s/worktrees/%s'",
                repo->common_dir, id);
    ssize_t n = fd_read_file(dir, "gitdir", path, size);
    if (n < 0 && n != -ENOENT)
        return err_set_errno(
                err, (int)n, "read '%s/worktrees/%s/gitdir'", repo->common_dir, id);
    if (n < 0)
        n = 0;
    while (n > 0 && (path[n - 1] == '\n' || path[n - 1] == '\r'))
        n--;
    path[n] = '\0';
    return 0;
}

/* A closedir() that takes NULL. */
static void close_dir(DIR *dir)
{
    if (dir)
        (void)closedir(dir);
}
DEFINE_AUTO(DIR *, close_dir)

/* The entries of worktrees/; NULL and 0 when there is no such directory. */
static int list_worktrees(const struct repo *repo, DIR **out)
{
    AUTO(fd_close) int fd = open_worktrees(repo);

    *out = NULL;
    if (fd < 0)
        return fd == -ENOENT ? 0 : fd;
    *out = fdopendir(fd);
    if (!*out)
        return -errno;
    (void)fd_steal(&fd);
    return 0;
}

int admin_list(const struct repo *repo,
        int (*each)(const char *task, const char *run, void *context), void *context,
        struct carrel_error *err)
{
    char task[NAME_ID_MAX + 1];
    char run[NAME_ID_MAX + 1];
    AUTO(close_dir) DIR *dir = NULL;
    int r = list_worktrees(repo, &dir);
    if (r < 0)
        return err_set_errno(err, r, "list '%s/worktrees'", repo->common_dir);

    for (struct dirent *entry; r >= 0 && dir && (entry = readdir(dir));) {
        if (split_id(entry->d_name, task, run))
            r = each(task, run, context);
    }
    return r < 0 ? r : 0;
}

static bool head_is(int dir, const char *path, const char *expected)
{
    char head[512];

    return fd_read_file(dir, path, head, sizeof(head)) > 0 && strcmp(head, expected) == 0;
}

bool admin_is_checked_out(const struct repo *repo, const char *branch)
{
    char expected[sizeof("ref: refs/heads/\n") + NAME_BRANCH_MAX];
    char path[NAME_MAX + 8];
    AUTO(close_dir) DIR *dir = NULL;

    (void)snprintf(expected, sizeof(expected), "ref: refs/heads/%s\n", branch);
    AUTO(fd_close) int common = open_common(repo);
    if (common < 0 || head_is(common, "HEAD", expected))
        return true; /* in doubt the branch is in use */
    if (list_worktrees(repo, &dir) < 0)
        return true;
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        (void)snprintf(path, sizeof(path), "%s/HEAD", entry->d_name);
        if (entry->d_name[0] != '.' && head_is(dirfd(dir), path, expected))
            return true;
    }
    return false;
}
