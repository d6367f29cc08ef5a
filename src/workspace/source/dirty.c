/* dirty.c - git stash create, on a copy of the index. */
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
#define STASH_TIMEOUT_MS 600000U

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

/*
 * A stash is a merge of HEAD and the index; the run's history starts with a plain commit of the
 * same files.
 */
static int make_plain(const struct git *git, const char *stash, const char *head,
        char oid[static OID_MAX], struct carrel_error *err)
{
    static const char message[] = "Uncommitted work\n";
    char tree[OID_MAX];
    char peeled[OID_MAX + 8];
    char ident[512];

    (void)snprintf(peeled, sizeof(peeled), "%s^{tree}", stash);
    int r = combine_ask_oid(git, GIT_ARGS("rev-parse", "--verify", peeled), tree, err);
    if (r < 0)
        return r;
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
    const struct git git = { .git_dir = repo->git_dir,
        .work_tree = repo->top,
        .index_file = index,
        .trust = GIT_AS_USER };
    AUTO(buf_finish) struct buf stash = BUF_INIT(4096);
    struct git_io io = GIT_IO_INIT;
    char head[OID_MAX];

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
    io.output = &stash;
    io.timeout_ms = STASH_TIMEOUT_MS;
    r = git_expect(&git, GIT_ARGS("stash", "create"), &io, err);
    if (r == -EIO)
        return err_wrap(err, r,
                "git cannot make a commit of it (is a merge unfinished, or a file added with "
                "'git add -N'?)");
    if (r < 0)
        return r;
    if (stash.len == 0) {
        memcpy(oid, head, OID_MAX);
        return 0;
    }
    if (!name_is_oid(stash.data))
        return err_set(err, -EBADMSG, "git stash create did not name a commit");
    return make_plain(&git, stash.data, head, oid, err);
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
