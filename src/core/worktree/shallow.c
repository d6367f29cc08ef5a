/* shallow.c - one pack, and a git dir that knows nothing else. */
#include "core/worktree/shallow.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/store.h"
#include "core/worktree/worktree.h"
#include "git/git.h"
#include "workspace/cache/expiry.h"
#include "workspace/private.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_OBJECTS (1U << 30)

int shallow_path(
        const struct worktree *worktree, char *path, size_t size, struct carrel_error *err)
{
    int n = snprintf(path, size, "%s/cuts/%s/%s/objects", worktree->state, worktree->repo->key,
            worktree->ws->base);

    return n < 0 || (size_t)n >= size
                   ? err_set_errno(err, -ENAMETOOLONG, "'%s'", worktree->state)
                   : 0;
}

/* The commit, its trees and its files; none of its ancestors. */
static int pack(const struct worktree *worktree, const char *dir, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf objects = BUF_INIT(MAX_OBJECTS);
    struct git git = repo_git(worktree->repo);
    struct git_io list = GIT_IO_INIT;
    struct git_io made = GIT_IO_INIT;
    char name[PATH_MAX];

    if (snprintf(name, sizeof(name), "%s/objects/pack/pack", dir) >= (int)sizeof(name))
        return err_set_errno(err, -ENAMETOOLONG, "'%s'", dir);
    list.output = &objects;
    int r = git_expect(&git,
            GIT_ARGS("rev-list", "--objects", "--max-count=1", worktree->ws->base), &list, err);
    if (r < 0)
        return r;
    buf_add_str(&objects, "\n");
    made.input = objects.data;
    made.input_len = objects.len;
    return git_expect(
            &git, GIT_ARGS("pack-objects", "-q", "--delta-base-offset", name), &made, err);
}

static int make(const struct worktree *worktree, const struct store *store, const char *name,
        struct carrel_error *err)
{
    struct store_draft draft = STORE_DRAFT_INIT;

    int r = store_draft(store, &draft, err);
    if (r == 0 && (mkdirat(draft.dir, "objects", 0700) < 0 ||
                          mkdirat(draft.dir, "objects/pack", 0700) < 0))
        r = err_set_errno(err, -errno, "create '%s/objects'", draft.path);
    if (r == 0)
        r = pack(worktree, draft.path, err);
    if (r == 0)
        r = store_publish(store, &draft, name, err);
    store_drop(store, &draft);
    return r == -EEXIST ? 0 : r; /* another process was faster, and its pack is the same */
}

/* Finds the pack in the cache, or makes it. */
static int prepare(const struct worktree *worktree, struct carrel_error *err)
{
    AUTO(store_finish) struct store store = STORE_INIT;
    char path[PATH_MAX];
    char name[PATH_MAX];

    if (snprintf(path, sizeof(path), "%s/cuts", worktree->state) >= (int)sizeof(path) ||
            snprintf(name, sizeof(name), "%s/%s", worktree->repo->key, worktree->ws->base) >=
                    (int)sizeof(name))
        return err_set_errno(err, -ENAMETOOLONG, "'%s'", worktree->state);
    int r = store_make(path, &store, err);
    if (r < 0 || expiry_use(&store, name) == 0)
        return r;
    return make(worktree, &store, name, err);
}

static int write_private(const struct worktree *worktree, const char *name, const char *text,
        struct carrel_error *err)
{
    AUTO(fd_close)
    int fd = openat(worktree->ws->dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    int r = fd < 0 ? -errno : fd_write_all(fd, text, strlen(text));

    return r < 0 ? err_set_errno(err, r, "write '%s/%s'", worktree->ws->path, name) : 0;
}

int shallow_make(struct worktree *worktree, struct carrel_error *err)
{
    static const char *const dirs[] = { "gitupper/objects", "gitupper/objects/info" };
    char shallow[OID_MAX + 2];
    char refs[OID_MAX + NAME_BRANCH_MAX + 64];

    int r = prepare(worktree, err);
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(dirs); i++)
        if (mkdirat(worktree->ws->dir, dirs[i], 0755) < 0 && errno != EEXIST)
            r = err_set_errno(err, -errno, "create '%s/%s'", worktree->ws->path, dirs[i]);
    (void)snprintf(shallow, sizeof(shallow), "%s\n", worktree->ws->base);
    if (r == 0)
        r = write_private(
                worktree, "gitupper/objects/info/alternates", PRIVATE_OBJECTS "\n", err);
    if (r == 0)
        r = write_private(worktree, "gitupper/shallow", shallow, err);
    (void)snprintf(refs, sizeof(refs), "# pack-refs with: sorted\n%s refs/heads/%s\n",
            worktree->ws->base, worktree->ws->branch);
    if (r == 0)
        r = write_private(worktree, "gitupper/packed-refs", refs, err);
    return r < 0 ? err_wrap(err, r, "--history cut") : 0;
}
