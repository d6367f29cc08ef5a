/*
 * harvest_fixture.h - for tests: a repository with a commit, a quarantine, and a second git dir
 * for the run.
 */
#pragma once
#include "base/err.h"
#include "base/fd.h"
#include "base/tree.h"
#include "harness.h"
#include "workspace/git_program.h"
#include "workspace/harvest/harvest.h"
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct fixture {
    char top[64];         /* everything is below: repo/, run/, quarantine/, upper/ */
    char git_dir[96];     /* of the repository */
    char objects[128];    /* its objects */
    char run_git[96];     /* git dir of the run; the repository's objects are its alternate */
    char quarantine[96];  /* object directory */
    char base[OID_MAX];   /* a commit on main, with files a, dir/b, dir/deep/c */
    char tree[OID_MAX];   /* its tree */
    char *object_dirs[2]; /* for repo */
    struct repo repo;
    struct carrel_error err;
};

/* Runs a shell command line; its output without the last newline goes to `out` if not NULL. */
__attribute__((format(printf, 3, 4), unused)) static void sh(
        char *out, size_t size, const char *fmt, ...)
{
    char line[4096];
    char scrap[4096];
    va_list ap;

    va_start(ap, fmt);
    CHECK(vsnprintf(line, sizeof(line), fmt, ap) < (int)sizeof(line));
    va_end(ap);
    FILE *pipe = popen(line, "re");
    CHECK(pipe);
    size_t n = fread(out ? out : scrap, 1, (out ? size : sizeof(scrap)) - 1, pipe);
    if (out) {
        out[n] = '\0';
        if (n > 0 && out[n - 1] == '\n')
            out[n - 1] = '\0';
    }
    int status = pclose(pipe);
    if (status != 0)
        test_fail(__FILE__, __LINE__, "status %d of: %s", status, line);
}

/* Neither the caller's git settings nor the clock reach the test. */
static void forget_the_caller(void)
{
    git_program_forget_caller();
    CHECK_EQ(setenv("GIT_CONFIG_GLOBAL", "/dev/null", 1), 0);
    CHECK_EQ(setenv("LC_ALL", "C", 1), 0);
    CHECK_EQ(setenv("GIT_AUTHOR_NAME", "A", 1), 0);
    CHECK_EQ(setenv("GIT_AUTHOR_EMAIL", "a@example.org", 1), 0);
    CHECK_EQ(setenv("GIT_COMMITTER_NAME", "C", 1), 0);
    CHECK_EQ(setenv("GIT_COMMITTER_EMAIL", "c@example.org", 1), 0);
    CHECK_EQ(setenv("GIT_AUTHOR_DATE", "1700000000 +0000", 1), 0);
    CHECK_EQ(setenv("GIT_COMMITTER_DATE", "1700000000 +0000", 1), 0);
}

__attribute__((unused)) static void fixture_init(struct fixture *fx, const char *init_options)
{
    *fx = (struct fixture){ .top = "/tmp/harvest-test-XXXXXX" };
    forget_the_caller();
    CHECK(test_mkdtemp(fx->top));
    (void)snprintf(fx->git_dir, sizeof(fx->git_dir), "%s/repo/.git", fx->top);
    (void)snprintf(fx->objects, sizeof(fx->objects), "%s/objects", fx->git_dir);
    (void)snprintf(fx->run_git, sizeof(fx->run_git), "%s/run/.git", fx->top);
    (void)snprintf(fx->quarantine, sizeof(fx->quarantine), "%s/quarantine", fx->top);

    sh(NULL, 0,
            "cd %s && mkdir upper && git init -q -b main %s repo && cd repo && mkdir -p "
            "dir/deep"
            " && echo a >a && echo b >dir/b && echo c >dir/deep/c && git add . &&"
            " git commit -qm base && cd .. && git init -q -b main %s run &&"
            " echo %s >run/.git/objects/info/alternates &&"
            " git -C run fetch -q ../repo main && git -C run reset -q --hard FETCH_HEAD",
            fx->top, init_options, init_options, fx->objects);
    sh(fx->base, sizeof(fx->base), "git -C %s/repo rev-parse HEAD", fx->top);
    sh(fx->tree, sizeof(fx->tree), "git -C %s/repo rev-parse HEAD:", fx->top);

    fx->object_dirs[0] = fx->objects;
    fx->repo = (struct repo){
        .git_dir = fx->git_dir,
        .common_dir = fx->git_dir,
        .objects = fx->object_dirs,
        .has_file_refs = true,
        .is_sha256 = strlen(fx->base) == 64,
    };
    CHECK_EQ(harvest_open(fx->quarantine, &fx->err), 0);
}

static inline void fixture_finish(struct fixture fx)
{
    AUTO(fd_close) int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fx.top[0])
        (void)tree_remove(tmp, fx.top + strlen("/tmp/"), NULL);
}
DEFINE_AUTO(struct fixture, fixture_finish)

/* The number of files in the quarantine, of whatever kind. */
__attribute__((unused)) static int quarantined(const struct fixture *fx)
{
    char text[32];

    sh(text, sizeof(text), "find %s -type f | wc -l", fx->quarantine);
    return atoi(text);
}

/* One word about `rev` as repository and quarantine together see it. */
__attribute__((format(printf, 4, 5), unused)) static void ask(
        const struct fixture *fx, char *out, size_t size, const char *fmt, ...)
{
    char command[1024];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(command, sizeof(command), fmt, ap);
    va_end(ap);
    sh(out, size,
            "GIT_OBJECT_DIRECTORY=%s GIT_ALTERNATE_OBJECT_DIRECTORIES=%s git --git-dir=%s %s",
            fx->quarantine, fx->objects, fx->git_dir, command);
}
