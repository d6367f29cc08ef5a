/* git_fixture.h - for tests: a private directory for a real git. */
#pragma once
#include "base/auto.h"
#include "base/fd.h"
#include "base/tree.h"
#include "harness.h"
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct fixture {
    char path[64];
};

/* The caller's configuration and environment have no effect below. */
static inline struct fixture fixture_open(void)
{
    struct fixture at = { "/tmp/carrel-git-test-XXXXXX" };
    char home[128];

    CHECK(test_mkdtemp(at.path));
    CHECK_EQ(clearenv(), 0);
    (void)snprintf(home, sizeof(home), "%s/home", at.path);
    CHECK_EQ(mkdir(home, 0700), 0);
    CHECK_EQ(setenv("HOME", home, 1), 0);
    CHECK_EQ(setenv("PATH", "/usr/local/bin:/usr/bin:/bin", 1), 0);
    CHECK_EQ(setenv("GIT_CONFIG_NOSYSTEM", "1", 1), 0);
    (void)snprintf(home, sizeof(home), "%s/home/.gitconfig", at.path);
    FILE *config = fopen(home, "we");
    CHECK(config);
    CHECK(fputs("[user]\n\tname = Tester\n\temail = tester@example.org\n"
                "[init]\n\tdefaultBranch = main\n",
                  config) >= 0);
    CHECK_EQ(fclose(config), 0);
    CHECK_EQ(chdir(at.path), 0);
    return at;
}

static inline void fixture_close(struct fixture at)
{
    CHECK_EQ(chdir("/tmp"), 0);
    CHECK_EQ(tree_remove(AT_FDCWD, at.path + strlen("/tmp/"), NULL), 0);
}
DEFINE_AUTO(struct fixture, fixture_close)

/* Runs a shell command in the current directory and returns its status. */
__attribute__((format(printf, 1, 2))) static inline int shell(const char *fmt, ...)
{
    char command[4096];
    va_list ap;
    int status;
    pid_t pid;

    va_start(ap, fmt);
    int len = vsnprintf(command, sizeof(command), fmt, ap);
    va_end(ap);
    CHECK(len > 0 && (size_t)len < sizeof(command));
    /* Not by fork, which would copy the sanitizer's memory for every command. */
    char *argv[] = { (char[]){ "sh" }, (char[]){ "-ec" }, command, NULL };
    CHECK_EQ(posix_spawn(&pid, "/bin/sh", NULL, NULL, argv, environ), 0);
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

#define SHELL(...) CHECK_EQ(shell(__VA_ARGS__), 0)

/* The output of a command, without the last newline; valid until the next call. */
__attribute__((format(printf, 1, 2))) static inline const char *printed(const char *fmt, ...)
{
    static char text[1 << 16];
    char command[3072];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(command, sizeof(command), fmt, ap);
    va_end(ap);
    SHELL("( %s ) > printed", command);
    ssize_t n = fd_read_file(AT_FDCWD, "printed", text, sizeof(text));
    CHECK(n >= 0);
    CHECK_EQ(unlink("printed"), 0);
    if (n > 0 && text[n - 1] == '\n')
        text[n - 1] = '\0';
    return text;
}
