/*
 * file_box.h - a directory that plays a sandbox for tests of file operations: it is the root of
 * all paths inside. For inclusion by a single test.
 */
#pragma once
#include "base/err.h"
#include "base/fd.h"
#include "core/files/file_access.h"
#include "harness.h"
#include "runtime/file_act.h"
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct carrel_error err;
static char inside[64] = "/tmp/files-test-in-XXXXXX";
static char outside[64] = "/tmp/files-test-out-XXXXXX";
static struct file_access box_access;
static void (*meddle)(void); /* called once, after the next file was opened */

static int ask(struct file_access *self, const struct file_request *request,
        struct file_answer *answer, struct carrel_error *e)
{
    int base = request->dir >= 0 ? request->dir : self->fd;
    const struct file_where where[2] = { { base, request->path }, { base, request->other } };

    int r = file_check(request, e);
    if (r == 0)
        r = file_act(request, where,
                request->dir >= 0 ? file_resolve_beneath() : RESOLVE_IN_ROOT, answer, e);
    if (r == 0 && request->op == FILE_OPEN && meddle) {
        void (*now)(void) = meddle;
        meddle = NULL;
        now();
    }
    return r;
}

static const struct file_access_ops test_ops = { .ask = ask };

static void begin(void)
{
    CHECK(test_mkdtemp(inside));
    CHECK(test_mkdtemp(outside));
    box_access = FILE_ACCESS_INIT;
    box_access.ops = &test_ops;
    box_access.fd = open(inside, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(box_access.fd >= 0);
    (void)umask(022);
}

/* Runs a line of shell with $I and $O for the two directories; returns its output. */
static const char *sh(const char *line)
{
    static char text[4096];
    int fds[2];
    int status;

    CHECK_EQ(pipe2(fds, O_CLOEXEC), 0);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        CHECK_EQ(setenv("I", inside, 1), 0);
        CHECK_EQ(setenv("O", outside, 1), 0);
        CHECK(dup2(fds[1], 1) >= 0);
        (void)execl("/bin/sh", "sh", "-ec", line, (char *)NULL);
        _exit(127);
    }
    fd_close(fds[1]);
    ssize_t n = fd_read_all(fds[0], text, sizeof(text) - 1);
    CHECK(n >= 0);
    text[n] = '\0';
    fd_close(fds[0]);
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK_EQ(status, 0);
    return text;
}

static char path_space[256];
static const char *out_path(const char *name)
{
    (void)snprintf(path_space, sizeof(path_space), "%s/%s", outside, name);
    return path_space;
}
