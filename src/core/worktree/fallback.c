/* fallback.c - a whole checkout and a private git dir in one directory. */
#include "core/worktree/fallback.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/fd.h"
#include "core/worktree/worktree.h"
#include "git/git.h"
#include "git/scope.h"
#include "workspace/private.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

/* The private git dir as one directory, where it cannot be an overlay. */
static int fill_private(const struct worktree *worktree, struct carrel_error *err)
{
    AUTO(fd_close)
    int private = openat(worktree->ws->dir, "gitupper", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    return private < 0 ? err_set_errno(err, -errno, "open '%s/gitupper'", worktree->ws->path)
                       : private_make_template(worktree->repo, private, err);
}

/* A whole checkout by the user's own git, if there is no copy-on-write. */
static int check_out_whole(
        const struct worktree *worktree, bool is_of_run, struct carrel_error *err)
{
    static const char link[] = "gitdir: " PRIVATE_GIT_DIR "\n";
    const struct workspace *ws = worktree->ws;
    char tree[PATH_MAX];
    char index[PATH_MAX];
    AUTO(scope_free_settings) char **no_filters = NULL;
    struct git git = repo_user_git(worktree->repo);
    struct git_io io = GIT_IO_INIT;

    if (snprintf(tree, sizeof(tree), "%s/tree", ws->path) >= (int)sizeof(tree) ||
            snprintf(index, sizeof(index), "%s/gitupper/index", ws->path) >= (int)sizeof(index))
        return err_set_errno(err, -ENAMETOOLONG, "'%s'", ws->path);
    if (mkdirat(ws->dir, "tree", 0755) < 0)
        return err_set_errno(err, -errno, "create '%s'", tree);
    int r = is_of_run ? scope_no_filters(&git, &no_filters, err) : 0;
    if (r < 0)
        return r;
    if (is_of_run)
        git.settings = (const char *const *)no_filters;
    git.work_tree = tree;
    git.index_file = index;
    r = git_expect(&git, GIT_ARGS("read-tree", ws->base), &io, err);
    if (r == 0)
        r = git_expect(&git, GIT_ARGS("checkout-index", "-a", "-u", "-q"), &io, err);
    if (r < 0)
        return r;
    AUTO(fd_close)
    int fd = openat(ws->dir, "tree/.git", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    r = fd < 0 ? -errno : fd_write_all(fd, link, sizeof(link) - 1);
    return r < 0 ? err_set_errno(err, r, "create '%s/.git'", tree) : 0;
}

int fallback_fill(const struct worktree *worktree, bool is_of_run, struct carrel_error *err)
{
    int r = fill_private(worktree, err);

    return r < 0 ? r : check_out_whole(worktree, is_of_run, err);
}
