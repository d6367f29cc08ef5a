/*
 * file_box.h - a directory that plays a sandbox for tests of file operations: it is the root of
 * all paths inside. For inclusion by a single test.
 *
 * FILES_TEST(sentence) is TEST(sentence), twice: `near`, where the directory has descriptors,
 * and `far`, where it is the workspace of a sandbox of the runtime `fake`, which has streams.
 */
#pragma once
#include "base/err.h"
#include "base/fd.h"
#include "core/files/file_access.h"
#include "harness.h"
#include "runtime/fake/fake.h"
#include "runtime/file_act.h"
#include "runtime/runtime.h"
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct carrel_error err;
static char inside[256] = "/tmp/files-test-in-XXXXXX";
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

static bool is_far;

#define FILES_TEST_AT(place, far_, sentence)                                                   \
    static void place##_##sentence(void)                                                       \
    {                                                                                          \
        is_far = far_;                                                                         \
        sentence();                                                                            \
    }                                                                                          \
    __attribute__((constructor)) static void register_##place##_##sentence(void)               \
    {                                                                                          \
        static struct test test = { .name = #place ": " #sentence,                             \
            .run = place##_##sentence };                                                       \
        test_register(&test);                                                                  \
    }
#define FILES_TEST(sentence)                                                                   \
    static void sentence(void);                                                                \
    FILES_TEST_AT(near, false, sentence)                                                       \
    FILES_TEST_AT(far, true, sentence)                                                         \
    static void sentence(void)

/* Paths below the workspace; "/" is the workspace itself. */
static const char *below(const char *path)
{
    while (path && *path == '/')
        path++;
    return path && !*path ? "." : path;
}

static int ask_far(struct file_access *self, const struct file_request *request,
        struct file_answer *answer, struct carrel_error *e)
{
    struct file_request there = *request;

    there.path = below(request->path);
    if (request->op == FILE_RENAME || request->op == FILE_LINK)
        there.other = below(request->other);
    return sandbox_file(self->box, &there, answer, e);
}

static void begin_far(void)
{
    static const struct file_access_ops far_ops = { .ask = ask_far };
    const struct sandbox_spec spec = {
        .id = "files-test",
        .network = NETWORK_HOST,
        .limits.value = { 256U << 20, 64, 1000, 64U << 20, 200 },
    };
    struct runtime *rt = NULL;

    fake_inject(NULL);
    CHECK_EQ(runtime_find("fake", &rt, &err), 0);
    CHECK_EQ(sandbox_create(rt, &spec, &box_access.box, &err), 0);
    CHECK_EQ(box_access.box->can & CAN_DESCRIPTORS, 0);
    CHECK(snprintf(inside, sizeof(inside), "%s", box_access.box->workspace) <
            (int)sizeof(inside));
    box_access.ops = &far_ops;
}

static const struct file_access_ops test_ops = { .ask = ask };

static void begin(void)
{
    CHECK(test_mkdtemp(outside));
    box_access = FILE_ACCESS_INIT;
    box_access.ops = &test_ops;
    if (is_far)
        begin_far();
    else
        CHECK(test_mkdtemp(inside));
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
