/*
 * dirty.c - what `git commit -a` would record, on a copy of the index.
 *
 * Not `git stash create`: it has git look into submodules, which obey a configuration of their
 * own, filters and all.
 */
#include "workspace/source/dirty.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/tree.h"
#include "git/attributes.h"
#include "git/combine.h"
#include "git/gitdir.h"
#include "git/name.h"
#include "git/status.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

/* For what a submodule has in the place of a file that git reads: see attributes.h. */
#define LOOK_TIMEOUT_MS 600000U
#define PATHS_MAX ((size_t)1 << 30)

/* The user's name from git, or ours: this must work without a configured name. */
static void find_ident(const struct git *git, char *line, size_t size)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(size - 1);
    struct git_io io = GIT_IO_INIT;

    io.output = &text;
    if (git_expect(git, GIT_ARGS("var", "GIT_COMMITTER_IDENT"), &io, NULL) == 0 && text.data)
        (void)snprintf(line, size, "%s", text.data);
    else
        (void)snprintf(
                line, size, "carrel <carrel@localhost> %lld +0000", (long long)time(NULL));
}

/* Brings the index to the state of the files, and makes it a tree. */
static int make_tree(const struct git *git, char tree[static OID_MAX], struct carrel_error *err)
{
    AUTO(buf_finish) struct buf paths = BUF_INIT(PATHS_MAX);
    struct git_io io = GIT_IO_INIT;

    /* What is not merged has no tree yet; after the update it would have. */
    int r = combine_ask_oid(git, GIT_ARGS("write-tree"), tree, err);
    io.output = &paths;
    io.timeout_ms = LOOK_TIMEOUT_MS;
    if (r == 0)
        r = git_expect(git,
                GIT_ARGS("diff-files", "--ignore-submodules=dirty", "--name-only", "-z"), &io,
                err);
    if (r == 0)
        r = git_feed(git,
                GIT_ARGS("-c", "core.safecrlf=false", "update-index", "--remove", "-z",
                        "--stdin"),
                &paths, err);
    return r < 0 ? r : combine_ask_oid(git, GIT_ARGS("write-tree"), tree, err);
}

static int make_commit(const struct git *git, const char *tree, const char *head,
        char oid[static OID_MAX], struct carrel_error *err)
{
    static const char message[] = "Uncommitted work\n";
    char ident[512];

    find_ident(git, ident, sizeof(ident));
    const struct combine_commit made = { .tree = tree,
        .parents = { head },
        .author = ident,
        .committer = ident,
        .message = message,
        .message_len = strlen(message) };
    return combine_write(git, &made, oid, err);
}

static int check_tree(const struct repo *repo, struct carrel_error *err)
{
    AUTO(fd_close) int top = gitdir_reopen(repo->top);

    return top < 0 ? err_set_errno(err, top, "open '%s'", repo->top)
                   : attributes_check(repo, top, err);
}

static int commit(const struct repo *repo, const char *index, char oid[static OID_MAX],
        struct carrel_error *err)
{
    struct git git = repo_user_git(repo);
    char head[OID_MAX];
    char before[OID_MAX];
    char tree[OID_MAX];

    git.git_dir = repo->git_dir;
    git.work_tree = repo->top;
    git.index_file = index;
    int r = combine_ask_oid(
            &git, GIT_ARGS("rev-parse", "--verify", "HEAD^{commit}"), head, err);
    if (r == -EIO)
        return err_set(err, -ENOENT, "there is no commit yet that it could belong to");
    if (r == 0)
        r = check_tree(repo, err);
    if (r == 0)
        r = survey_copy_index(repo, index, err);
    if (r < 0)
        return r;
    r = combine_ask_oid(&git, GIT_ARGS("rev-parse", "--verify", "HEAD^{tree}"), before, err);
    if (r < 0)
        return r;
    r = make_tree(&git, tree, err);
    if (r == -EIO)
        return err_wrap(err, r, "git cannot make a commit of it (is a merge unfinished?)");
    if (r < 0)
        return r;
    if (strcmp(tree, before) != 0)
        return make_commit(&git, tree, head, oid, err);
    memcpy(oid, head, OID_MAX);
    return 0;
}

int dirty_commit(const struct repo *repo, char oid[static OID_MAX], struct carrel_error *err)
{
    char dir[] = "/tmp/carrel-dirty-XXXXXX";
    char index[sizeof(dir) + 8];
    char made[OID_MAX];
    AUTO(fd_close) int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (!repo->top)
        return err_set(err, -EINVAL,
                "the repository is bare: it has no files with uncommitted changes");
    if (tmp < 0 || !mkdtemp(dir))
        return err_set_errno(err, -errno, "make a temporary directory in /tmp");
    (void)snprintf(index, sizeof(index), "%s/index", dir);
    int r = commit(repo, index, made, err);
    (void)tree_remove(
            tmp, dir + strlen("/tmp/"), NULL); /* a copy; a failure here does not matter */
    if (r < 0)
        return err_wrap(err, r, "read the uncommitted work in '%s'", repo->top);
    memcpy(oid, made, OID_MAX);
    return 0;
}
