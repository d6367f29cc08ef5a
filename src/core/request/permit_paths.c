/* permit_paths.c - sandbox.mounts.allow against what a run shows of the host. */
#include "core/request/permit_paths.h"
#include "base/err.h"
#include "base/path.h"
#include "git/repo.h"
#include "policy/policy.h"
#include "workspace/workspace.h"
#include <carrel/run.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* By where it really is: a link in an allowed directory is no way out of it. */
static int check_source(const struct policy *policy, const char *source, bool is_writable,
        const char *option, struct carrel_error *err)
{
    char cwd[PATH_MAX];
    char path[PATH_MAX];
    char flag[PATH_MAX + 32];

    if (!realpath(source, path) &&
            (!getcwd(cwd, sizeof(cwd)) || !path_absolute(cwd, source, path, sizeof(path))))
        return err_set_errno(err, -errno, "'%s'", source);
    (void)snprintf(flag, sizeof(flag), "%s %s", option, source);
    return policy_check_item(policy, POLICY_MOUNTS_ALLOW, path, is_writable, flag, err);
}

int permit_paths(const struct carrel_run_options *o, const struct policy *policy,
        struct carrel_error *err)
{
    int r = o->root ? check_source(policy, o->root, false, "--root", err) : 0;

    for (size_t i = 0; r == 0 && i < o->n_mounts; i++)
        r = check_source(policy, o->mounts[i].source, o->mounts[i].is_writable,
                strcmp(o->mounts[i].target, "/workspace") == 0 ? "--workdir" : "--mount", err);
    return r;
}

int permit_folder(const struct policy *policy, const char *path, struct carrel_error *err)
{
    return policy ? check_source(policy, path, false, "--workdir", err) : 0;
}

int permit_repo(const struct policy *policy, const struct repo *repo, struct carrel_error *err)
{
    if (!policy)
        return 0;
    int r = check_source(
            policy, repo->top ? repo->top : repo->common_dir, false, "--repo", err);
    /* Those of a linked work tree, and what a repository borrows, lie elsewhere. */
    for (size_t i = 0; r == 0 && repo->objects[i]; i++)
        r = check_source(policy, repo->objects[i], false, "--repo", err);
    return r;
}

int permit_workspace(
        const struct policy *policy, const struct workspace *ws, struct carrel_error *err)
{
    const char *path = ws->top ? ws->top : ws->repo;

    return policy ? check_source(policy, path, false, "the workspace of", err) : 0;
}
