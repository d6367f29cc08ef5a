/* git_program.h - the real git for tests, independent of the user's configuration. */
#pragma once
#include "base/buf.h"
#include "base/fd.h"
#include "harness.h"
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* The caller's git settings do not reach the test. */
static inline void git_program_forget_caller(void)
{
    static const char *const names[] = { "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE",
        "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_CONFIG",
        "GIT_CONFIG_COUNT", "GIT_CONFIG_PARAMETERS", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM",
        "GIT_NAMESPACE", "GIT_CEILING_DIRECTORIES", "XDG_CONFIG_HOME" };

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        CHECK_EQ(unsetenv(names[i]), 0);
    CHECK_EQ(setenv("GIT_CONFIG_NOSYSTEM", "1", 1), 0);
    CHECK_EQ(setenv("HOME", "/nonexistent", 1), 0);
}

struct git_program {
    const char *cwd;
    const char *git_dir; /* these three may be NULL */
    const char *work_tree;
    const char *index_file;
};

/* Everything through files: nothing can block, whatever git reads first. */
static inline int git_program_file(const void *data, size_t len)
{
    int fd = memfd_create("git", MFD_CLOEXEC);

    CHECK(fd >= 0);
    CHECK_EQ(fd_write_all(fd, data, len), 0);
    CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
    return fd;
}

static inline void git_program_output(int fd, struct buf *out)
{
    char block[65536];
    ssize_t n;

    CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
    while ((n = read(fd, block, sizeof(block))) > 0)
        buf_add(out, block, (size_t)n);
    CHECK(n == 0 && !out->is_short);
    buf_add_str(out, ""); /* data is a string even if there was no output */
}

/* Not by fork, which would copy the sanitizer's memory for every program. */
static inline pid_t git_program_start(
        const struct git_program *git, const char *const *args, int in_fd, int out_fd)
{
    posix_spawn_file_actions_t actions;
    char vars[3][4200];
    char *argv[40] = { (char[]){ "git" } };
    char *env[16] = { (char[]){ "HOME=/nonexistent" }, (char[]){ "GIT_CONFIG_NOSYSTEM=1" },
        (char[]){ "GIT_CONFIG_GLOBAL=/dev/null" }, (char[]){ "LC_ALL=C" },
        (char[]){ "PATH=/usr/local/bin:/usr/bin:/bin" }, (char[]){ "GIT_AUTHOR_NAME=a" },
        (char[]){ "GIT_AUTHOR_EMAIL=a@example.com" }, (char[]){ "GIT_COMMITTER_NAME=a" },
        (char[]){ "GIT_COMMITTER_EMAIL=a@example.com" } };
    size_t n_env = 9;
    const char *names[] = { "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE" };
    const char *values[] = { git->git_dir, git->work_tree, git->index_file };
    pid_t pid;

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (!values[i])
            continue;
        (void)snprintf(vars[i], sizeof(vars[i]), "%s=%s", names[i], values[i]);
        env[n_env++] = vars[i];
    }
    for (size_t i = 0; args[i] && i + 2 < ARRAY_LEN(argv); i++)
        memcpy(&argv[i + 1], &args[i], sizeof(char *));
    CHECK_EQ(posix_spawn_file_actions_init(&actions), 0);
    CHECK_EQ(posix_spawn_file_actions_adddup2(&actions, in_fd, 0), 0);
    CHECK_EQ(posix_spawn_file_actions_adddup2(&actions, out_fd, 1), 0);
    if (git->cwd)
        CHECK_EQ(posix_spawn_file_actions_addchdir_np(&actions, git->cwd), 0);
    CHECK_EQ(posix_spawnp(&pid, "git", &actions, NULL, argv, env), 0);
    CHECK_EQ(posix_spawn_file_actions_destroy(&actions), 0);
    return pid;
}

/* Runs git to its end; `out` (may be NULL) receives its output. Returns its exit status. */
static inline int git_program_run(const struct git_program *git, const char *const *args,
        const void *input, size_t len, struct buf *out)
{
    AUTO(fd_close) int in_fd = git_program_file(input, len);
    AUTO(fd_close) int out_fd = git_program_file("", 0);
    pid_t pid = git_program_start(git, args, in_fd, out_fd);
    int status;

    CHECK_EQ(waitpid(pid, &status, 0), pid);
    if (out)
        git_program_output(out_fd, out);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

/* The words of a command: GIT_WORDS("init", "-q"). */
#define GIT_WORDS(...) ((const char *const[]){ __VA_ARGS__, NULL })
