/* place_fixture.h - for tests: a repository with one commit, and a state directory. */
#pragma once
#include "base/err.h"
#include "base/tree.h"
#include "workspace/git_program.h"
#include "workspace/workspace.h"
#include <errno.h>
#include <string.h>

struct fixture {
    char top[64];   /* everything is below */
    char where[96]; /* the user's work tree */
    char state[96];
    char base[OID_MAX]; /* its commit, on main */
    struct repo *repo;
    struct git_program git;
    struct carrel_error err;
};

/* Runs git in the work tree; it must succeed. `out` (may be NULL) gets its output. */
static inline void fixture_git(struct fixture *fx, const char *const *args, struct buf *out)
{
    int r = git_program_run(&fx->git, args, "", 0, out);

    if (r != 0)
        test_fail(__FILE__, __LINE__, "git %s: status %d", args[0], r);
}

/* The same for one line of output, without its newline. */
static inline void fixture_ask(
        struct fixture *fx, const char *const *args, char *answer, size_t size)
{
    AUTO(buf_finish) struct buf out = BUF_INIT(65536);

    fixture_git(fx, args, &out);
    (void)snprintf(answer, size, "%.*s", (int)strcspn(out.data, "\n"), out.data);
}

static inline void fixture_write(struct fixture *fx, const char *name, const char *text)
{
    char path[512];

    (void)snprintf(path, sizeof(path), "%s/%s", fx->top, name);
    AUTO(fd_close) int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    CHECK(fd >= 0);
    CHECK_EQ(fd_write_all(fd, text, strlen(text)), 0);
}

static inline void fixture_commit(
        struct fixture *fx, const char *text, char oid[static OID_MAX])
{
    fixture_write(fx, "repo/file", text);
    fixture_git(fx, GIT_WORDS("add", "file"), NULL);
    fixture_git(fx, GIT_WORDS("commit", "-q", "-m", text), NULL);
    fixture_ask(fx, GIT_WORDS("rev-parse", "HEAD"), oid, OID_MAX);
}

static inline void fixture_init(struct fixture *fx)
{
    *fx = (struct fixture){ .top = "/tmp/workspace-test-XXXXXX" };
    CHECK(test_mkdtemp(fx->top));
    git_program_forget_caller();
    (void)snprintf(fx->where, sizeof(fx->where), "%s/repo", fx->top);
    (void)snprintf(fx->state, sizeof(fx->state), "%s/state", fx->top);
    CHECK_EQ(mkdir(fx->where, 0755), 0);
    fx->git.cwd = fx->where;
    fixture_git(fx, GIT_WORDS("init", "-q", "-b", "main"), NULL);
    fixture_commit(fx, "first", fx->base);
    CHECK_EQ(repo_open(fx->where, &fx->repo, &fx->err), 0);
}

/* Removes the tree `name` in the directory `where` below the fixture's own. */
static inline void fixture_remove(struct fixture *fx, const char *where, const char *name)
{
    char path[256];

    (void)snprintf(path, sizeof(path), "%s/%s", fx->top, where);
    AUTO(fd_close) int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(dir >= 0);
    CHECK_EQ(tree_remove(dir, name, &fx->err), 0);
}

static inline void fixture_finish(struct fixture *fx)
{
    repo_free(fx->repo);
    fixture_remove(fx, "..", fx->top + strlen("/tmp/"));
}

static inline struct workspace_request fixture_request(
        const struct fixture *fx, const char *task, const char *run)
{
    return (struct workspace_request){
        .state = fx->state,
        .repo = fx->repo,
        .task = task,
        .run = run,
        .base = fx->base,
    };
}

static inline struct workspace *fixture_create(
        struct fixture *fx, const char *task, const char *run)
{
    const struct workspace_request request = fixture_request(fx, task, run);
    struct workspace *ws = NULL;
    int r = workspace_create(&request, &ws, &fx->err);

    if (r < 0)
        test_fail(__FILE__, __LINE__, "create: %s", fx->err.message);
    return ws;
}

/* Whether `name` below the fixture's directory is there. */
static inline bool fixture_has(const struct fixture *fx, const char *name)
{
    char path[512];
    struct stat st;

    (void)snprintf(path, sizeof(path), "%s/%s", fx->top, name);
    return lstat(path, &st) == 0;
}

/* Whether the repository has the branch, and where: `oid` may be NULL. */
static inline bool fixture_has_branch(struct fixture *fx, const char *branch, const char *oid)
{
    AUTO(buf_finish) struct buf out = BUF_INIT(4096);
    char ref[256];

    (void)snprintf(ref, sizeof(ref), "refs/heads/%s", branch);
    if (git_program_run(&fx->git, GIT_WORDS("rev-parse", "-q", "--verify", ref), "", 0, &out) !=
            0)
        return false;
    return !oid || strncmp(out.data, oid, strlen(oid)) == 0;
}

/* A commit with nothing new, and nothing that leads to it. */
static inline void fixture_make_work(struct fixture *fx, char oid[static OID_MAX])
{
    char tree[OID_MAX + 8];

    (void)snprintf(tree, sizeof(tree), "%s^{tree}", fx->base);
    fixture_ask(fx, GIT_WORDS("commit-tree", "-p", fx->base, "-m", "work", tree), oid, OID_MAX);
}

/* Puts the workspace's branch at `oid`, as a commit of its work does. */
static inline void fixture_publish(struct fixture *fx, struct workspace *ws, const char *oid)
{
    char ref[WORKSPACE_REF_MAX];

    workspace_branch_ref(ws, ref);
    fixture_git(fx, GIT_WORDS("update-ref", ref, oid), NULL);
    (void)snprintf(ws->branch_at, sizeof(ws->branch_at), "%s", oid);
    CHECK_EQ(workspace_save(ws, &fx->err), 0);
}

/* A workspace with a ref of its own for the base. */
static inline struct workspace *fixture_create_loose(
        struct fixture *fx, const char *task, const char *run)
{
    struct workspace_request request = fixture_request(fx, task, run);
    struct workspace *ws = NULL;

    request.is_base_loose = true;
    if (workspace_create(&request, &ws, &fx->err) < 0)
        test_fail(__FILE__, __LINE__, "create: %s", fx->err.message);
    return ws;
}

/* How many refs the repository has below `prefix`. */
static inline int fixture_count_refs(struct fixture *fx, const char *prefix)
{
    AUTO(buf_finish) struct buf out = BUF_INIT(65536);
    int n = 0;

    fixture_git(fx, GIT_WORDS("for-each-ref", prefix), &out);
    for (size_t i = 0; i < out.len; i++)
        n += out.data[i] == '\n';
    return n;
}
