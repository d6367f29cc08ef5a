/* checkout_fixture.h - for tests: a repository, and the cache of its commits. */
#pragma once
#include "base/err.h"
#include "base/fd.h"
#include "base/tree.h"
#include "git/format/index.h"
#include "harness.h"
#include "workspace/cache/checkout.h"
#include "workspace/git_program.h"
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Every test has a directory of its own, with a repository in it and a state directory. */
static struct carrel_error err;
static char top[64];
static char state[96];
static struct repo *repo;

/* Runs a line of shell in the test's directory; returns the exit status. */
static inline int try_sh(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static inline int try_sh(const char *fmt, ...)
{
    char line[8192];
    int status;
    va_list ap;

    va_start(ap, fmt);
    int len = vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    CHECK(len > 0 && (size_t)len < sizeof(line));
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        (void)dup2(STDERR_FILENO, STDOUT_FILENO);
        if (chdir(top) == 0)
            (void)execl("/bin/sh", "sh", "-euc", line, (char *)NULL);
        _exit(126);
    }
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}
#define sh(...) CHECK_EQ(try_sh(__VA_ARGS__), 0)

static inline const char *read_text(const char *name)
{
    static char text[8192];
    char path[PATH_MAX];

    (void)snprintf(path, sizeof(path), "%s/%s", top, name);
    CHECK(fd_read_file(AT_FDCWD, path, text, sizeof(text)) >= 0);
    text[strcspn(text, "\n")] = '\0';
    return text;
}

static inline const char *commit_of(const char *rev)
{
    static char oids[8][OID_MAX];
    static size_t next;
    char *oid = oids[next++ % ARRAY_LEN(oids)];

    sh("git -C repo rev-parse %s >oid", rev);
    (void)snprintf(oid, OID_MAX, "%.*s", OID_MAX - 1, read_text("oid"));
    return oid;
}

static inline void begin_with(const char *init)
{
    char path[96];

    (void)snprintf(top, sizeof(top), "/tmp/checkout-test-XXXXXX");
    CHECK(test_mkdtemp(top));
    (void)snprintf(state, sizeof(state), "%s/state", top);
    git_program_forget_caller();
    CHECK_EQ(setenv("HOME", top, 1), 0);
    sh("git config --global user.name Tester; git config --global user.email t@example.org; "
       "git config --global init.defaultBranch main; %s",
            init);
    (void)snprintf(path, sizeof(path), "%s/repo", top);
    CHECK_EQ(repo_open(path, &repo, &err), 0);
}

/* Some files of all kinds, in one commit. */
static inline void begin(void)
{
    begin_with(
            "git init -q repo; cd repo; mkdir -p a/b/c d; echo one >a/one; echo two >a/b/two; "
            "echo three >a/b/c/three; echo x >d/run; chmod +x d/run; ln -s ../a/one d/link; "
            "for i in $(seq 40); do echo $i >d/$i; done; : >empty; "
            "echo odd >\"d/an 'odd' \\\"name\\\"$(printf '\\n\\t.')\"; "
            "git add -A; git commit -qm first");
}

static inline void end(void)
{
    AUTO(fd_close) int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    repo_free(repo);
    CHECK_EQ(tree_remove(tmp, top + strlen("/tmp/"), &err), 0);
}

static inline struct checkout_owner self(void)
{
    return (struct checkout_owner){ .uid = getuid(), .gid = getgid() };
}

static inline struct checkout *make(const char *commit)
{
    AUTO(checkout_draft_free) struct checkout_draft *draft = NULL;
    struct checkout *checkout = NULL;

    int r = checkout_fill(state, repo, commit, self(), NULL, NULL, &draft, &err);
    if (r < 0)
        test_fail(__FILE__, __LINE__, "fill: %s", err.message);
    r = checkout_publish(state, repo, draft, -1, &checkout, &err);
    if (r < 0)
        test_fail(__FILE__, __LINE__, "publish: %s", err.message);
    return checkout;
}

static inline int find(const char *commit)
{
    AUTO(checkout_free) struct checkout *checkout = NULL;

    return checkout_find(state, repo, commit, &checkout, &err);
}

static inline struct checkout_facts facts_of(const struct checkout *checkout)
{
    struct checkout_facts facts;
    AUTO(fd_close) int dir = open(checkout->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    CHECK_EQ(checkout_facts_read(dir, &facts), 0);
    return facts;
}

static inline struct index *index_of(const struct checkout *checkout)
{
    char path[PATH_MAX];
    struct index *index = NULL;

    (void)snprintf(path, sizeof(path), "%s/index", checkout->git);
    AUTO(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
    CHECK_EQ(index_read(fd, repo->is_sha256, &index, &err), 0);
    return index;
}
