/* repo_resolve.c - from what people call a commit to its id. */
#include "base/err.h"
#include "base/str.h"
#include "git/name.h"
#include "git/ref.h"
#include "git/repo.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define REV_MAX 512
#define GIT_TIMEOUT_MS 60000

static int check_rev(const char *rev, struct carrel_error *err)
{
    size_t len = strlen(rev);
    char shown[128];

    (void)str_escape(rev, len, shown, sizeof(shown));
    if (len == 0 || len > REV_MAX || rev[0] == '-')
        return err_set(err, -EINVAL, "'%s' is not the name of a commit", shown);
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)rev[i] < ' ' || rev[i] == 0x7f)
            return err_set(
                    err, -EINVAL, "'%s' has control characters: no commit is named so", shown);
    return 0;
}

static bool exists(const struct repo *repo, const char *before, const char *rev)
{
    char name[REF_NAME_MAX + 1], oid[OID_MAX];

    (void)snprintf(name, sizeof(name), "%s%s", before, rev);
    return ref_is_name(name) && ref_read(repo, name, oid, NULL) != -ENOENT;
}

/*
 * A branch by its short name. git looks in other places first (gitrevisions(7)); when there is
 * anything of that name, or the name could be one of the special files in the git dir, git
 * shall decide.
 */
static int read_branch(const struct repo *repo, const char *rev, char oid[static OID_MAX])
{
    char name[REF_NAME_MAX + 1];

    if (!repo->has_file_refs) /* three questions to git would be slower than one */
        return -ENOENT;
    if (strspn(rev, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") == strlen(rev) || strcmp(rev, "@") == 0 ||
            strcmp(rev, "config") == 0 || exists(repo, "refs/", rev) ||
            exists(repo, "refs/tags/", rev))
        return -ENOENT;
    (void)snprintf(name, sizeof(name), "refs/heads/%s", rev);
    return ref_is_name(name) ? ref_read(repo, name, oid, NULL) : -ENOENT;
}

static int ask_git(const struct repo *repo, const char *rev, char oid[static OID_MAX],
        struct carrel_error *err)
{
    AUTO(buf_finish) struct buf output = BUF_INIT(256);
    struct git git = repo_git(repo);
    struct git_io io = GIT_IO_INIT;
    char commit[REV_MAX + 16], shown[128];

    git.git_dir = repo->git_dir; /* HEAD and the reflog of HEAD are each work tree's own */
    io.output = &output;
    io.timeout_ms = GIT_TIMEOUT_MS;
    /* ":/text" is a commit already, and takes all that follows for text. */
    (void)snprintf(
            commit, sizeof(commit), "%s%s", rev, strncmp(rev, ":/", 2) == 0 ? "" : "^{commit}");
    int r = git_run(
            &git, GIT_ARGS("rev-parse", "--verify", "--end-of-options", commit), &io, err);
    if (r < 0)
        return r;
    if (r > 0)
        return err_set(err, -ENOENT, "'%s' is not a commit of the repository '%s'",
                str_escape(rev, strlen(rev), shown, sizeof(shown)),
                repo->top ? repo->top : repo->git_dir);
    if (output.len > 0 && output.data[output.len - 1] == '\n')
        output.data[--output.len] = '\0';
    if (!output.data || !name_is_oid(output.data))
        return err_set(err, -EIO, "git rev-parse gave no object id");
    (void)snprintf(oid, OID_MAX, "%s", output.data);
    return 0;
}

int repo_resolve(const struct repo *repo, const char *rev, char oid[static OID_MAX],
        struct carrel_error *err)
{
    int r;

    if (!rev || strcmp(rev, "HEAD") == 0) {
        r = ref_read(repo, "HEAD", oid, err);
        if (r == -ENOENT)
            return err_set(err, r, "the repository '%s' has no commit yet: make a first one",
                    repo->top ? repo->top : repo->git_dir);
        return r;
    }
    r = check_rev(rev, err);
    if (r < 0)
        return r;
    if (name_is_oid(rev) && strlen(rev) == (repo->is_sha256 ? 64 : 40)) {
        (void)snprintf(oid, OID_MAX, "%s", rev);
        return 0;
    }
    if (strncmp(rev, "refs/heads/", 11) == 0 && ref_is_name(rev) && repo->has_file_refs &&
            ref_read(repo, rev, oid, NULL) == 0)
        return 0;
    if (read_branch(repo, rev, oid) == 0)
        return 0;
    return ask_git(repo, rev, oid, err);
}

int repo_has_commit(const struct repo *repo, const char *oid, struct carrel_error *err)
{
    const struct git git = repo_git(repo);
    char commit[OID_MAX + 16];

    (void)snprintf(commit, sizeof(commit), "%s^{commit}", oid);
    int r = git_run(&git, GIT_ARGS("cat-file", "-e", commit), NULL, err);
    return r < 0 ? r : r == 0;
}
