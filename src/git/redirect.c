/* redirect.c - compares the two ends by what they are, not by how they are named. */
#include "git/redirect.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"
#include "git/gitdir.h"
#include "git/repo_format.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static bool is_same_dir(int a, int b)
{
    struct stat one, other;

    return a >= 0 && b >= 0 && fstat(a, &one) == 0 && fstat(b, &other) == 0 &&
           is_same(&one, &other);
}

int redirect_check_common(int git_dir, int common, struct carrel_error *err)
{
    AUTO(free) char *from = NULL;
    AUTO(free) char *to = NULL;
    AUTO(fd_close) int above = gitdir_open(git_dir, "..");
    AUTO(fd_close) int list = gitdir_open(common, "worktrees");

    if (is_same_dir(git_dir, common) || is_same_dir(above, list))
        return 0;
    int r = gitdir_path(git_dir, &from, err);
    if (r == 0)
        r = gitdir_path(common, &to, err);
    if (r < 0)
        return r;
    return err_set(err, -EPERM,
            "'%s/commondir' leads to '%s', which has no such worktree; an earlier program may "
            "have made that file: remove it",
            from, to);
}

/* Whether the file `name` in the git dir of a linked work tree names `.git` of `top`. */
static bool names_git_file(int git_dir, int top)
{
    char path[PATH_MAX];
    struct stat own, named;

    if (gitdir_load_path(git_dir, "gitdir", path) < 0)
        return false;
    return fstatat(top, ".git", &own, AT_SYMLINK_NOFOLLOW) == 0 &&
           fstatat(git_dir, path, &named, AT_SYMLINK_NOFOLLOW) == 0 && is_same(&own, &named);
}

/* Whether `.git` of `top` is this git dir, or a file that names it. */
static bool leads_to(int top, int git_dir)
{
    char line[PATH_MAX];
    AUTO(fd_close) int at = -1;

    if (top < 0)
        return false;
    if (gitdir_load_path(top, ".git", line) == 0)
        at = strncmp(line, "gitdir: ", 8) == 0 ? gitdir_open(top, line + 8) : -1;
    else
        at = openat(top, ".git", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return is_same_dir(at, git_dir);
}

static int refuse_way(const struct repo *repo, bool is_linked, struct carrel_error *err)
{
    if (is_linked)
        return err_set(err, -EPERM,
                "'%s/.git' leads to '%s', which is that of another work tree; an earlier "
                "program may have written it. If it is yours: git --git-dir '%s' worktree "
                "repair '%s'",
                repo->top, repo->git_dir, repo->common_dir, repo->top);
    return err_set(err, -EPERM,
            "'%s/.git' leads to '%s', which does not lead back; an earlier program may have "
            "written it. If it is yours: git --git-dir '%s' config core.worktree '%s'",
            repo->top, repo->git_dir, repo->git_dir, repo->top);
}

/* Replaces repo->top by the work tree of the configuration, which has to be in it. */
static int take_inner(struct repo *repo, int work_tree, struct carrel_error *err)
{
    AUTO(free) char *path = NULL;
    int r = work_tree < 0 ? 0 : gitdir_path(work_tree, &path, err);

    if (r < 0 || !path) /* there is no such directory: as git, an error where it is needed */
        return r;
    if (!path_is_below(path, repo->top))
        return err_set(err, -EPERM,
                "core.worktree in the configuration of '%s' is '%s', outside of '%s'; an "
                "earlier "
                "program may have set it: remove that line",
                repo->git_dir, path, repo->top);
    free(repo->top);
    repo->top = ptr_steal(&path);
    return 0;
}

/* The work tree was found by its `.git`. */
static int settle_found(struct repo *repo, int git_dir, int work_tree, bool is_linked,
        const struct repo_format *format, struct carrel_error *err)
{
    AUTO(fd_close) int top = gitdir_reopen(repo->top);

    if (top < 0)
        return err_set_errno(err, top, "open '%s'", repo->top);
    if (is_linked)
        return names_git_file(git_dir, top) ? 0 : refuse_way(repo, true, err);
    if (!path_is_below(repo->git_dir, repo->top))
        return !format->is_bare && is_same_dir(work_tree, top) ? 0
                                                               : refuse_way(repo, false, err);
    if (!format->is_bare)
        return take_inner(repo, work_tree, err);
    free(repo->top);
    repo->top = NULL;
    return 0;
}

int redirect_settle_top(struct repo *repo, int git_dir, const struct repo_format *format,
        struct carrel_error *err)
{
    static const char dot_git[] = "/.git";
    bool is_linked = strcmp(repo->git_dir, repo->common_dir) != 0;
    size_t len = strlen(repo->git_dir);
    AUTO(fd_close)
    int work_tree = format->work_tree ? gitdir_open(git_dir, format->work_tree) : -ENOENT;

    if (repo->top)
        return settle_found(repo, git_dir, work_tree, is_linked, format, err);
    if (is_linked || format->is_bare)
        return 0;
    if (format->work_tree)
        return leads_to(work_tree, git_dir) ? gitdir_path(work_tree, &repo->top, err) : 0;
    if (len < sizeof(dot_git) || strcmp(repo->git_dir + len - strlen(dot_git), dot_git) != 0)
        return 0;
    AUTO(fd_close) int above = gitdir_open(git_dir, "..");
    return above < 0 ? 0 : gitdir_path(above, &repo->top, err);
}
