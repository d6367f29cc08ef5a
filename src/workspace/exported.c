/*
 * exported.c - the checkout is made under a name beside its own and renamed when it is whole;
 * it is taken away in the same two steps.
 *
 * Git itself makes the worktree that the repository knows, in a directory of ours (the seed)
 * and without files, so that its form is right wherever refs are kept. It is then locked and
 * told where its files are.
 */
#include "workspace/exported.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/tree.h"
#include "git/combine.h"
#include "git/ref.h"
#include "git/scratch.h"
#include "workspace/admin.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define SCRATCH_NAME "view"

/* Everything about one view that is a path. */
struct view {
    char git_file[PATH_MAX]; /* "<directory>/.git", as the repository knows it */
    char path[PATH_MAX];     /* the directory */
    char parent[PATH_MAX];
    char name[NAME_MAX + 1];  /* last component of path */
    char draft[NAME_MAX + 1]; /* beside it, half made or half gone */
    char admin[PATH_MAX];     /* its git dir, below worktrees/ of the repository */
    char index[PATH_MAX];
};

/* Fills in what follows from view->path. */
static int derive(struct view *view, const struct workspace *ws, const struct repo *repo,
        struct carrel_error *err)
{
    int r = admin_path(repo, ws->task, ws->run, view->admin, sizeof(view->admin), err);
    if (r < 0)
        return r;
    const char *slash = strrchr(view->path, '/');
    if (!path_is_clean(view->path) || slash[1] == '\0')
        return err_set(
                err, -EINVAL, "'%s' is not an absolute path that can be used", view->path);
    if ((size_t)snprintf(view->git_file, sizeof(view->git_file), "%s/.git", view->path) >=
                    sizeof(view->git_file) ||
            (size_t)snprintf(view->index, sizeof(view->index), "%s/index", view->admin) >=
                    sizeof(view->index))
        return err_set_errno(err, -ENAMETOOLONG, "open '%s'", view->path);
    (void)snprintf(view->parent, sizeof(view->parent), "%.*s",
            slash == view->path ? 1 : (int)(slash - view->path), view->path);
    (void)snprintf(view->name, sizeof(view->name), "%s", slash + 1);
    (void)snprintf(view->draft, sizeof(view->draft), ".carrel-%s-%s", ws->task, ws->run);
    return 0;
}

/* Where the repository says it is. */
static int find(struct view *view, const struct workspace *ws, const struct repo *repo,
        struct carrel_error *err)
{
    int r = admin_gitdir(repo, ws->task, ws->run, view->git_file, sizeof(view->git_file), err);
    if (r < 0)
        return r;
    size_t len = strlen(view->git_file);
    if (len < 6 || strcmp(view->git_file + len - 5, "/.git") != 0)
        return err_set(err, -EINVAL,
                "the repository does not know where run '%s' is: carrel workspace repair %s",
                ws->run, ws->run);
    (void)snprintf(view->path, sizeof(view->path), "%.*s", (int)(len - 5), view->git_file);
    return derive(view, ws, repo, err);
}

static int record_place(const struct view *view, const char *git_file, struct carrel_error *err)
{
    char path[PATH_MAX];
    char line[PATH_MAX + 8];

    (void)snprintf(line, sizeof(line), "%s\n", git_file);
    if ((size_t)snprintf(path, sizeof(path), "%s/gitdir", view->admin) >= sizeof(path))
        return err_set_errno(err, -ENAMETOOLONG, "write in '%s'", view->admin);
    return fd_replace_file(path, line, strlen(line), 0644, err);
}

int opened_find(const struct workspace *ws, const struct repo *repo, char *path, size_t size,
        struct carrel_error *err)
{
    struct view view;
    int r = find(&view, ws, repo, err);

    if (r == 0 && (size_t)snprintf(path, size, "%s", view.path) >= size)
        r = err_set_errno(err, -ENAMETOOLONG, "'%s'", view.path);
    return r;
}

bool opened_is_there(const struct workspace *ws, const struct repo *repo)
{
    struct view view;
    struct stat st;

    return find(&view, ws, repo, NULL) == 0 && lstat(view.path, &st) == 0;
}

/* A scratch git dir in the workspace's own directory, which writes files in the form that the
 * user's git expects there; an older one is of the dead. */
static int make_scratch(const struct workspace *ws, const struct repo *repo,
        const struct view *view, struct scratch **out, char **attributes,
        struct carrel_error *err)
{
    const struct git user = { .git_dir = view->admin, .trust = GIT_AS_USER };
    char dir[PATH_MAX];
    int r = tree_remove(ws->dir, SCRATCH_NAME, err);

    if (r < 0)
        return r;
    if (mkdirat(ws->dir, SCRATCH_NAME, 0700) < 0)
        return err_set_errno(err, -errno, "make '%s/" SCRATCH_NAME "'", ws->path);
    if ((size_t)snprintf(dir, sizeof(dir), "%s/" SCRATCH_NAME, ws->path) >= sizeof(dir))
        return err_set_errno(err, -ENAMETOOLONG, "make a scratch git dir");
    r = scratch_make(repo, dir, NULL, out, err);
    return r < 0 ? r : scratch_take_form(*out, repo, &user, attributes, err);
}

static int write_git_file(int draft, const struct view *view, struct carrel_error *err)
{
    char line[PATH_MAX + 16];
    AUTO(fd_close)
    int fd = openat(draft, ".git", O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    int n = snprintf(line, sizeof(line), "gitdir: %s\n", view->admin);

    int r = fd < 0 ? -errno : fd_write_all(fd, line, (size_t)n);
    return r < 0 ? err_set_errno(err, r, "write '%s'", view->git_file) : 0;
}

/* The branch's files and an index that knows them, by a git that knows no filter. */
static int check_out(const struct workspace *ws, const struct repo *repo,
        const struct view *view, const char *commit, struct carrel_error *err)
{
    AUTO(scratch_free) struct scratch *scratch = NULL;
    AUTO(free) char *attributes = NULL;
    struct git_io io = GIT_IO_INIT;
    char draft[PATH_MAX];
    int r = make_scratch(ws, repo, view, &scratch, &attributes, err);
    if (r < 0)
        return r;

    if ((size_t)snprintf(draft, sizeof(draft), "%s/%s", view->parent, view->draft) >=
            sizeof(draft))
        return err_set_errno(err, -ENAMETOOLONG, "make '%s'", view->path);
    (void)unlink(view->index); /* of an earlier view; not there is fine */
    struct git git = scratch_git(scratch);
    git.work_tree = draft;
    git.index_file = view->index;
    r = git_expect(&git,
            GIT_ARGS("-c", "core.protectHFS=true", "-c", "core.protectNTFS=true", "read-tree",
                    commit),
            &io, err);
    if (r == 0)
        r = git_expect(
                &git, GIT_ARGS("-c", attributes, "checkout-index", "-a", "-u", "-q"), &io, err);
    return r;
}

static int make(const struct workspace *ws, const struct repo *repo, const struct view *view,
        const char *commit, struct carrel_error *err)
{
    AUTO(fd_close) int parent = open(view->parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (parent < 0)
        return err_set_errno(err, -errno, "open '%s'", view->parent);
    int r = record_place(view, view->git_file, err); /* first: so a crash can be found */
    if (r == 0)
        r = tree_remove(parent, view->draft, err);
    if (r < 0)
        return r;
    if (mkdirat(parent, view->draft, 0777) < 0)
        return err_set_errno(err, -errno, "make a directory in '%s'", view->parent);
    AUTO(fd_close) int draft = openat(parent, view->draft, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (draft < 0)
        return err_set_errno(err, -errno, "open a directory in '%s'", view->parent);
    r = check_out(ws, repo, view, commit, err);
    if (r == 0)
        r = write_git_file(draft, view, err);
    /* Over an empty directory at most: a rename of a directory replaces nothing else. */
    if (r == 0 && renameat(parent, view->draft, parent, view->name) < 0)
        r = err_set_errno(err, -errno, "make '%s'", view->path);
    (void)tree_remove(ws->dir, SCRATCH_NAME, NULL); /* the next one removes it too */
    if (r < 0)
        (void)tree_remove(parent, view->draft, NULL); /* likewise */
    return r;
}

static int usual_place(
        const struct workspace *ws, char path[static PATH_MAX], struct carrel_error *err)
{
    char above[PATH_MAX];
    int r = workspace_opened_path(ws, path, PATH_MAX, err);
    if (r < 0)
        return r;

    (void)snprintf(above, sizeof(above), "%.*s", (int)(strrchr(path, '/') - path), path);
    if (mkdir(above, 0700) < 0 && errno != EEXIST)
        return err_set_errno(err, -errno, "make '%s'", above);
    return 0;
}

/* -EEXIST when it is opened; also when the record does not say so, as after a crash. */
static int refuse_second(const struct workspace *ws, const struct repo *repo, char *path,
        size_t size, struct carrel_error *err)
{
    struct view view;
    struct stat st;
    int r = find(&view, ws, repo, err);

    if (r < 0)
        return r;
    if (lstat(view.path, &st) < 0)
        return errno == ENOENT ? 0 : err_set_errno(err, -errno, "look at '%s'", view.path);
    (void)snprintf(path, size, "%s", view.path);
    return err_set(err, -EEXIST, "run '%s' is opened already, at '%s'", ws->run, view.path);
}

/* As if it had never been opened: the usual place, and no index. */
static int forget(struct workspace *ws, const struct view *view, struct carrel_error *err)
{
    char usual[PATH_MAX];
    char git_file[PATH_MAX];
    int r = workspace_opened_path(ws, usual, sizeof(usual), err);

    if (r == 0 &&
            (size_t)snprintf(git_file, sizeof(git_file), "%s/.git", usual) >= sizeof(git_file))
        r = err_set_errno(err, -ENAMETOOLONG, "close '%s'", usual);
    if (r == 0)
        r = record_place(view, git_file, err);
    if (r == 0 && unlink(view->index) < 0 && errno != ENOENT)
        r = err_set_errno(err, -errno, "remove '%s'", view->index);
    if (r < 0)
        return r;
    ws->is_opened = false;
    return workspace_save(ws, err);
}

int opened_open(struct workspace *ws, const struct repo *repo, const struct checkout *checkout,
        const char *at, char *path, size_t size, struct carrel_error *err)
{
    struct view view = { 0 };
    char branch[NAME_BRANCH_MAX + 16];
    char commit[OID_MAX];
    struct stat st;

    (void)checkout;
    if (ws->is_folder)
        return err_set(err, -ENOTSUP, "a folder without git cannot be opened: apply it");
    int r = refuse_second(ws, repo, path, size, err);
    if (r < 0)
        return r;
    r = at ? 0 : usual_place(ws, view.path, err);
    if (r < 0)
        return r;
    if (at && (size_t)snprintf(view.path, sizeof(view.path), "%s", at) >= sizeof(view.path))
        return err_set_errno(err, -ENAMETOOLONG, "open at '%s'", at);
    r = derive(&view, ws, repo, err);
    if (r < 0)
        return r;
    if (lstat(view.path, &st) == 0)
        return err_set(err, -EEXIST, "'%s' exists already: choose a new directory", view.path);
    (void)snprintf(branch, sizeof(branch), "refs/heads/%s", ws->branch);
    r = ref_read(repo, branch, commit, err);
    if (r == -ENOENT)
        return err_set(err, r,
                "branch '%s' was deleted; 'carrel workspace repair %s/%s' makes it anew",
                ws->branch, ws->task, ws->run);
    if (r < 0)
        return err_wrap(err, r, "find the branch of run '%s'", ws->run);

    ws->is_opened = true; /* before it is: a crash must not hide it */
    r = workspace_save(ws, err);
    if (r == 0)
        r = make(ws, repo, &view, commit, err);
    if (r < 0) {
        (void)forget(ws, &view, NULL); /* what failed first is what matters */
        return err_wrap(err, r, "open run '%s'", ws->run);
    }
    (void)snprintf(path, size, "%s", view.path);
    return 0;
}

/* HEAD of the view is on the run's branch, and nothing is half done there. */
static int check_head(
        const struct workspace *ws, const struct view *view, struct carrel_error *err)
{
    static const char *const unfinished[] = { "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD",
        "rebase-merge", "rebase-apply", "BISECT_LOG" };
    char head[NAME_BRANCH_MAX + 64];
    char expected[NAME_BRANCH_MAX + 64];
    AUTO(fd_close) int admin = open(view->admin, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (admin < 0)
        return err_set_errno(err, -errno, "open '%s'", view->admin);

    for (size_t i = 0; i < ARRAY_LEN(unfinished); i++)
        if (faccessat(admin, unfinished[i], F_OK, AT_SYMLINK_NOFOLLOW) == 0)
            return err_set(err, -ENOTEMPTY,
                    "a merge, rebase or bisect is not finished in '%s': finish it or give it "
                    "up",
                    view->path);
    (void)snprintf(expected, sizeof(expected), "ref: refs/heads/%s\n", ws->branch);
    if (fd_read_file(admin, "HEAD", head, sizeof(head)) < 0 || strcmp(head, expected) != 0)
        return err_set(err, -ENOTEMPTY,
                "another branch than '%s' is checked out in '%s': git switch %s there first",
                ws->branch, view->path, ws->branch);
    return 0;
}

/* 0: git has nothing to say. 1: it has. */
static int ask_differs(const struct git *git, const char *const *args, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf text = BUF_INIT((size_t)64 << 20);
    struct git_io io = GIT_IO_INIT;

    io.output = &text;
    int r = git_expect(git, args, &io, err);
    if (r == -EFBIG)
        return 1;
    return r < 0 ? r : text.len > 0;
}

/*
 * Whether something there is in no commit. Ignored files do not count, as for `git worktree
 * remove`. The user's filters stay out of it, and a file that they made another on the disk
 * counts as changed.
 */
static int check_clean(const struct workspace *ws, const struct repo *repo,
        const struct view *view, const char *commit, struct carrel_error *err)
{
    AUTO(scratch_free) struct scratch *scratch = NULL;
    AUTO(free) char *attributes = NULL;
    struct git_io io = GIT_IO_INIT;
    int r = make_scratch(ws, repo, view, &scratch, &attributes, err);
    if (r < 0)
        return r;

    struct git git = scratch_git(scratch);
    git.work_tree = view->path;
    git.index_file = view->index;
    r = git_run(&git, GIT_ARGS("-c", attributes, "update-index", "-q", "--refresh"), &io, err);
    if (r >= 0)
        r = ask_differs(
                &git, GIT_ARGS("-c", attributes, "diff-files", "--name-only", "-z"), err);
    if (r == 0)
        r = ask_differs(&git,
                GIT_ARGS("diff-index", "--cached", "--name-only", "-z", commit, "--"), err);
    if (r == 0)
        r = ask_differs(&git,
                GIT_ARGS("ls-files", "--others", "-z", "--exclude-per-directory=.gitignore"),
                err);
    (void)tree_remove(ws->dir, SCRATCH_NAME, NULL); /* the next one removes it too */
    if (r == 1)
        return err_set(err, -ENOTEMPTY,
                "there are changes in '%s' that are not committed: commit them there, or throw "
                "them away (git reset --hard; git clean -fd)",
                view->path);
    return r;
}

static int take_away(const struct view *view, struct carrel_error *err)
{
    AUTO(fd_close) int parent = open(view->parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (parent < 0)
        return errno == ENOENT ? 0 : err_set_errno(err, -errno, "open '%s'", view->parent);
    int r = tree_remove(parent, view->draft, err);

    if (r == 0 && renameat(parent, view->name, parent, view->draft) < 0 && errno != ENOENT)
        r = err_set_errno(err, -errno, "remove '%s'", view->path);
    if (r == 0)
        r = tree_remove(parent, view->draft, err);
    return r;
}

int opened_close(struct workspace *ws, const struct repo *repo, struct carrel_error *err)
{
    struct view view = { 0 };
    char branch[NAME_BRANCH_MAX + 16];
    char commit[OID_MAX];
    struct stat st;

    int r = find(&view, ws, repo, err);
    if (r < 0)
        return r;
    bool is_there = lstat(view.path, &st) == 0;
    if (is_there) {
        (void)snprintf(branch, sizeof(branch), "refs/heads/%s", ws->branch);
        r = ref_read(repo, branch, commit, err);
        if (r == 0)
            r = check_head(ws, &view, err);
        if (r == 0)
            r = check_clean(ws, repo, &view, commit, err);
        if (r < 0)
            return err_wrap(err, r, "close run '%s'", ws->run);
        ws->is_ahead = ws->is_ahead || strcmp(ws->snapshot, commit) != 0;
        memcpy(ws->tip, commit, OID_MAX);
        memcpy(ws->snapshot, commit, OID_MAX);
        memcpy(ws->branch_at, commit, OID_MAX);
        ws->is_published = true;
    }
    r = take_away(&view, err);
    if (r == 0)
        r = tree_remove(ws->dir, SCRATCH_NAME, err);
    if (r == 0)
        r = forget(ws, &view, err);
    return r < 0 ? err_wrap(err, r, "close run '%s'", ws->run) : 0;
}
