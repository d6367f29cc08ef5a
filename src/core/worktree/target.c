/* target.c - compares repositories by their common dir, work trees by their path. */
#include "core/worktree/target.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/named.h"
#include "core/worktree/worktree.h"
#include <errno.h>

static const char *name_of(const struct repo *repo)
{
    return repo->top ? repo->top : repo->common_dir;
}

static int refuse_here(const struct workspace *ws, const char *here, struct carrel_error *err)
{
    AUTO(repo_free) struct repo *repo = NULL;
    const char *own = ws->top ? ws->top : ws->repo;

    if (repo_open(here, &repo, NULL) < 0 || strcmp(repo->common_dir, ws->repo) == 0)
        return 0;
    return err_set(err, -EXDEV,
            "workspace '%s/%s' is of '%s', and this is '%s': go there, or say --repo %s",
            ws->task, ws->run, own, name_of(repo), own);
}

int target_open(const char *dir, struct repo **out, struct carrel_error *err)
{
    AUTO(fd_close) int fd = named_open(dir ? dir : ".", NAMED_DIRECTORY, err);
    int r = fd < 0 ? fd : repo_open_at(fd, dir ? dir : ".", out, err);

    if (r < 0 && dir)
        return err_wrap(err, r, "--repo");
    if (r == -ENOENT)
        return err_wrap(err, r, "--workspace (implied by --run, --task, --base ...)");
    return r;
}

int target_choose(
        struct worktree *worktree, const char *dir, const char *here, struct carrel_error *err)
{
    const struct workspace *ws = worktree->ws;
    AUTO(repo_free) struct repo *repo = NULL;

    if (ws->is_folder)
        return dir ? err_set(err, -EINVAL,
                             "--repo is for git repositories, and workspace '%s/%s' is of the "
                             "folder '%s'",
                             ws->task, ws->run, ws->top)
                   : 0;
    if (!dir)
        return here ? refuse_here(ws, here, err) : 0;
    int r = target_open(dir, &repo, err);
    if (r < 0)
        return r;
    if (strcmp(repo->common_dir, ws->repo) != 0)
        return err_set(err, -EXDEV, "workspace '%s/%s' is of '%s', and --repo is '%s'",
                ws->task, ws->run, ws->top ? ws->top : ws->repo, name_of(repo));
    repo_free(worktree->target);
    worktree->target = ptr_steal(&repo);
    return 0;
}

int target_find(
        const struct worktree *worktree, const struct repo **out, struct carrel_error *err)
{
    const struct workspace *ws = worktree->ws;
    const struct repo *repo = worktree->target ? worktree->target : worktree->repo;

    if (!worktree->target && !ws->is_folder && ws->top &&
            (!repo->top || strcmp(repo->top, ws->top) != 0))
        return err_set(err, -ENOENT,
                "the worktree '%s' that the run began in is not there any more: name another "
                "one of this repository, --repo DIR",
                ws->top);
    if (!repo->top)
        return err_set(err, -EINVAL,
                "the repository '%s' is bare: it has no files to apply to; commit and fetch",
                repo->common_dir);
    *out = repo;
    return 0;
}
