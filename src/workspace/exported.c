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
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define SCRATCH_NAME "view"
#define SEED_MAX (2 * NAME_ID_MAX + 16)

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
static int derive(struct view *view, const struct workspace *ws, struct carrel_error *err)
{
    const char *slash = strrchr(view->path, '/');
    if (!path_is_clean(view->path) || slash[1] == '\0')
        return err_set(
                err, -EINVAL, "'%s' is not an absolute path that can be used", view->path);
    if ((size_t)snprintf(view->git_file, sizeof(view->git_file), "%s/.git", view->path) >=
            sizeof(view->git_file))
        return err_set_errno(err, -ENAMETOOLONG, "open '%s'", view->path);
    (void)snprintf(view->parent, sizeof(view->parent), "%.*s",
            slash == view->path ? 1 : (int)(slash - view->path), view->path);
    (void)snprintf(view->name, sizeof(view->name), "%s", slash + 1);
    (void)snprintf(view->draft, sizeof(view->draft), ".carrel-%s-%s", ws->task, ws->run);
    return 0;
}

static int derive_admin(struct view *view, const struct workspace *ws, const struct repo *repo,
        struct carrel_error *err)
{
    if (!path_is_name(ws->worktree))
        return err_set(err, -ENOENT,
                "the repository does not know where run '%s' is: carrel workspace repair %s",
                ws->run, ws->run);
    if ((size_t)snprintf(view->admin, sizeof(view->admin), "%s/worktrees/%s", repo->common_dir,
                ws->worktree) >= sizeof(view->admin) ||
            (size_t)snprintf(view->index, sizeof(view->index), "%s/index", view->admin) >=
                    sizeof(view->index))
        return err_set_errno(err, -ENAMETOOLONG, "open '%s'", view->path);
    return 0;
}

/* Where the record says it is; -ENOENT: nowhere. */
static int find(struct view *view, const struct workspace *ws, struct carrel_error *err)
{
    if (!ws->opened_at)
        return err_set(err, -ENOENT, "run '%s' is not open", ws->run);
    if ((size_t)snprintf(view->path, sizeof(view->path), "%s", ws->opened_at) >=
            sizeof(view->path))
        return err_set_errno(err, -ENAMETOOLONG, "'%s'", ws->opened_at);
    return derive(view, ws, err);
}

static void seed_name(const struct workspace *ws, char name[static SEED_MAX])
{
    (void)snprintf(name, SEED_MAX, "carrel-%s+%s", ws->task, ws->run);
}

/* Reads from the seed what git called the worktree. */
static int read_seed(const struct workspace *ws, char id[static NAME_MAX + 1])
{
    char name[SEED_MAX + sizeof("/.git")];
    char line[PATH_MAX + 16];

    seed_name(ws, name);
    (void)strcat(name, "/.git");
    ssize_t n = fd_read_file(ws->dir, name, line, sizeof(line));
    if (n < 0)
        return (int)n;
    line[strcspn(line, "\n")] = '\0';
    const char *slash = strrchr(line, '/');
    if (!slash || !path_is_name(slash + 1))
        return -EBADMSG;
    (void)snprintf(id, NAME_MAX + 1, "%.*s", NAME_MAX, slash + 1);
    return 0;
}

static int remove_worktree(const struct repo *repo, const char *id, struct carrel_error *err)
{
    AUTO(fd_close) int common = open(repo->common_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    AUTO(fd_close)
    int all = common < 0 ? -1
                         : openat(common, "worktrees",
                                   O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (all < 0)
        return errno == ENOENT
                       ? 0
                       : err_set_errno(err, -errno, "open '%s/worktrees'", repo->common_dir);
    int r = path_is_name(id) ? tree_remove(all, id, err) : 0;
    (void)unlinkat(common, "worktrees", AT_REMOVEDIR); /* others are in it: it stays */
    return r;
}

/* Makes the repository forget the worktree, also one that a crash left behind half made. */
static int unregister(struct workspace *ws, const struct repo *repo, struct carrel_error *err)
{
    char seed[SEED_MAX];
    char id[NAME_MAX + 1];

    int r = remove_worktree(repo, ws->worktree, err);
    if (r == 0 && read_seed(ws, id) == 0)
        r = remove_worktree(repo, id, err);
    seed_name(ws, seed);
    if (r == 0)
        r = tree_remove(ws->dir, seed, err);
    if (r == 0)
        ws->worktree[0] = '\0';
    return r;
}

static int write_admin(
        const struct view *view, const char *name, const char *text, struct carrel_error *err)
{
    char path[PATH_MAX];
    char line[PATH_MAX + 8];

    (void)snprintf(line, sizeof(line), "%s\n", text);
    if ((size_t)snprintf(path, sizeof(path), "%s/%s", view->admin, name) >= sizeof(path))
        return err_set_errno(err, -ENAMETOOLONG, "write in '%s'", view->admin);
    return fd_replace_file(path, line, strlen(line), 0644, err);
}

/* Makes a worktree of the repository whose files are at view->path, locked for its life. */
static int make_worktree(struct workspace *ws, const struct repo *repo, struct view *view,
        struct carrel_error *err)
{
    struct git git = repo_git(repo);
    struct git_io io = GIT_IO_INIT;
    char seed[SEED_MAX];
    char path[PATH_MAX];
    char reason[NAME_ID_MAX + 16];

    int r = unregister(ws, repo, err);
    if (r < 0)
        return r;
    seed_name(ws, seed);
    if ((size_t)snprintf(path, sizeof(path), "%s/%s", ws->path, seed) >= sizeof(path))
        return err_set_errno(err, -ENAMETOOLONG, "'%s'", ws->path);
    io.finishes = true;
    r = git_expect(
            &git, GIT_ARGS("worktree", "add", "--no-checkout", path, ws->branch), &io, err);
    if (r < 0)
        return r;
    r = read_seed(ws, ws->worktree);
    if (r < 0)
        return err_set_errno(err, r, "read '%s/.git'", path);
    r = workspace_save(ws, err);
    if (r == 0)
        r = derive_admin(view, ws, repo, err);
    (void)snprintf(reason, sizeof(reason), "carrel run %s", ws->run);
    if (r == 0) /* before it points to files that are not there yet: git would prune it */
        r = write_admin(view, "locked", reason, err);
    if (r == 0)
        r = write_admin(view, "gitdir", view->git_file, err);
    return r < 0 ? r : tree_remove(ws->dir, seed, err);
}

/* A scratch git dir in the workspace's own directory, which writes files in the form that the
 * user's git expects there; an older one is of the dead. */
static int make_scratch(const struct workspace *ws, const struct repo *repo,
        const struct view *view, struct scratch **out, char **attributes,
        struct carrel_error *err)
{
    struct git user = repo_user_git(repo);
    char dir[PATH_MAX];
    int r = tree_remove(ws->dir, SCRATCH_NAME, err);

    if (r < 0)
        return r;
    if (mkdirat(ws->dir, SCRATCH_NAME, 0700) < 0)
        return err_set_errno(err, -errno, "make '%s/" SCRATCH_NAME "'", ws->path);
    if ((size_t)snprintf(dir, sizeof(dir), "%s/" SCRATCH_NAME, ws->path) >= sizeof(dir))
        return err_set_errno(err, -ENAMETOOLONG, "make a scratch git dir");
    user.git_dir = view->admin;
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
    int r = tree_remove(parent, view->draft, err);
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

/* -EEXIST when it is opened; after a crash its directory may not be there. */
static int refuse_second(
        const struct workspace *ws, char *path, size_t size, struct carrel_error *err)
{
    struct view view;
    struct stat st;
    int r = find(&view, ws, err);

    if (r < 0)
        return r == -ENOENT ? 0 : r;
    if (lstat(view.path, &st) < 0)
        return errno == ENOENT ? 0 : err_set_errno(err, -errno, "look at '%s'", view.path);
    (void)snprintf(path, size, "%s", view.path);
    return err_set(err, -EEXIST, "run '%s' is opened already, at '%s'", ws->run, view.path);
}

/* As if it had never been opened. A branch that was made for that alone has no work. */
static int forget(struct workspace *ws, const struct repo *repo, struct carrel_error *err)
{
    char ref[WORKSPACE_REF_MAX];
    int r = unregister(ws, repo, err);

    workspace_branch_ref(ws, ref);
    if (r == 0 && strcmp(ws->branch_at, ws->base) == 0) {
        r = ref_delete(repo, ref, ws->base, err);
        if (r == 0)
            ws->branch_at[0] = '\0';
        if (r == -ESTALE)
            r = 0; /* moved meanwhile: it stays */
    }
    if (r < 0)
        return r;
    ws->is_opened = false;
    free(ws->opened_at);
    ws->opened_at = NULL;
    return workspace_save(ws, err);
}

int opened_forget(struct workspace *ws, struct carrel_error *err)
{
    AUTO(repo_free) struct repo *repo = NULL;
    int r = workspace_repo(ws, &repo, err);

    return r < 0 ? r : forget(ws, repo, err);
}

/* The path, checked: `at`, or the usual one. */
static int choose(
        struct view *view, const struct workspace *ws, const char *at, struct carrel_error *err)
{
    struct stat st;
    int r = at ? 0 : usual_place(ws, view->path, err);

    if (r < 0)
        return r;
    if (at && (size_t)snprintf(view->path, sizeof(view->path), "%s", at) >= sizeof(view->path))
        return err_set_errno(err, -ENAMETOOLONG, "open at '%s'", at);
    r = derive(view, ws, err);
    if (r == 0 && lstat(view->path, &st) == 0)
        r = err_set(err, -EEXIST, "'%s' exists already: choose a new directory", view->path);
    return r;
}

/* Where the branch is, or is to be made: a run that changed nothing has none. */
static int find_commit(const struct workspace *ws, const struct repo *repo, const char *ref,
        char commit[static OID_MAX], struct carrel_error *err)
{
    int r = ref_read(repo, ref, commit, err);

    if (r == 0 && !ws->branch_at[0])
        return err_set(err, -EEXIST,
                "branch '%s' exists already and is not this run's: rename it (git branch -m)",
                ws->branch);
    if (r == -ENOENT) {
        (void)snprintf(commit, OID_MAX, "%s", ws->base);
        return 1;
    }
    return r;
}

int opened_open(struct workspace *ws, const struct repo *repo, const char *at, char *path,
        size_t size, struct carrel_error *err)
{
    struct view view = { 0 };
    char ref[WORKSPACE_REF_MAX];
    char commit[OID_MAX];

    if (ws->is_folder)
        return err_set(err, -ENOTSUP, "a folder without git cannot be opened: apply it");
    int r = refuse_second(ws, path, size, err);
    if (r == 0)
        r = choose(&view, ws, at, err);
    if (r < 0)
        return r;
    workspace_branch_ref(ws, ref);
    r = find_commit(ws, repo, ref, commit, err);
    if (r < 0)
        return err_wrap(err, r, "find the branch of run '%s'", ws->run);
    bool has_branch = r == 0;
    if (!has_branch)
        memcpy(ws->branch_at, commit, sizeof(commit));
    free(ws->opened_at);
    ws->opened_at = strdup(view.path);
    ws->is_opened = true; /* before it is: a crash must not hide it */
    r = ws->opened_at ? workspace_save(ws, err) : err_set_errno(err, -ENOMEM, "open a run");
    if (r == 0 && !has_branch)
        r = ref_create(repo, ref, commit, "carrel: open", err);
    if (r == 0)
        r = make_worktree(ws, repo, &view, err);
    if (r == 0)
        r = make(ws, repo, &view, commit, err);
    if (r < 0) {
        (void)forget(ws, repo, NULL); /* what failed first is what matters */
        return err_wrap(err, r, "open run '%s'", ws->run);
    }
    (void)snprintf(path, size, "%s", view.path);
    return 0;
}

int opened_repair(struct workspace *ws, const struct repo *repo, struct carrel_error *err)
{
    struct view view = { 0 };
    struct stat st;
    struct git_io io = GIT_IO_INIT;

    int r = find(&view, ws, err);
    if (r < 0 || lstat(view.path, &st) < 0)
        return r < 0 && r != -ENOENT ? r : 0;
    if (derive_admin(&view, ws, repo, NULL) == 0 && lstat(view.admin, &st) == 0)
        return 0;
    r = make_worktree(ws, repo, &view, err);
    if (r < 0)
        return r;
    AUTO(fd_close) int dir = open(view.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0 || (unlinkat(dir, ".git", 0) < 0 && errno != ENOENT))
        return err_set_errno(err, -errno, "replace '%s'", view.git_file);
    const struct git git = { .git_dir = view.admin, .work_tree = view.path };
    r = write_git_file(dir, &view, err);
    if (r == 0)
        r = git_expect(&git, GIT_ARGS("read-tree", "HEAD"), &io, err);
    return r < 0 ? r : 1;
}

/* HEAD of the view is on the run's branch, and nothing is half done there. */
static int check_head(
        const struct workspace *ws, const struct view *view, struct carrel_error *err)
{
    static const char *const unfinished[] = { "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD",
        "rebase-merge", "rebase-apply", "BISECT_LOG" };
    const struct git git = { .git_dir = view->admin };
    AUTO(buf_finish) struct buf head = BUF_INIT(4096);
    char expected[WORKSPACE_REF_MAX];
    struct git_io io = GIT_IO_INIT;
    AUTO(fd_close) int admin = open(view->admin, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (admin < 0)
        return err_set(err, -errno,
                "'%s' is gone: 'carrel workspace repair %s/%s' makes it anew", view->admin,
                ws->task, ws->run);

    for (size_t i = 0; i < ARRAY_LEN(unfinished); i++)
        if (faccessat(admin, unfinished[i], F_OK, AT_SYMLINK_NOFOLLOW) == 0)
            return err_set(err, -ENOTEMPTY,
                    "a merge, rebase or bisect is not finished in '%s': finish it or give it "
                    "up",
                    view->path);
    workspace_branch_ref(ws, expected);
    io.output = &head;
    if (git_expect(&git, GIT_ARGS("symbolic-ref", "-q", "HEAD"), &io, NULL) < 0 || !head.data ||
            strcmp(head.data, expected) != 0)
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
    char ref[WORKSPACE_REF_MAX];
    char commit[OID_MAX];
    struct stat st;

    int r = find(&view, ws, err);
    if (r < 0)
        return r == -ENOENT ? forget(ws, repo, err) : r;
    if (lstat(view.path, &st) == 0) {
        workspace_branch_ref(ws, ref);
        r = ref_read(repo, ref, commit, err);
        if (r == 0)
            r = derive_admin(&view, ws, repo, err);
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
        ws->is_published = strcmp(commit, ws->base) != 0;
        ws->is_branch_asked = ws->is_published;
    }
    r = take_away(&view, err);
    if (r == 0)
        r = tree_remove(ws->dir, SCRATCH_NAME, err);
    if (r == 0)
        r = forget(ws, repo, err);
    return r < 0 ? err_wrap(err, r, "close run '%s'", ws->run) : 0;
}
