/* bench_fixture.h - a temporary directory of runs for the tests of the journal. */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/tree.h"
#include "harness.h"
#include "journal/journal.h"
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

struct bench {
    char dir[64];
    char runs[80];
};

static inline void bench_finish(struct bench bench)
{
    AUTO(fd_close) int tmp = open("/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC);

    (void)tree_remove(tmp, strrchr(bench.dir, '/') + 1, NULL);
}
DEFINE_AUTO(struct bench, bench_finish)

static inline struct bench bench_make(void)
{
    struct bench bench = { .dir = "/tmp/carrel-journal-test-XXXXXX" };

    CHECK(test_mkdtemp(bench.dir));
    (void)snprintf(bench.runs, sizeof(bench.runs), "%s/runs", bench.dir);
    return bench;
}

static inline struct journal *bench_open(
        const struct bench *bench, const char *run, const struct journal_key *key)
{
    const struct journal_options options = {
        .runs = bench->runs,
        .run = run,
        .task = "T-1",
        .key = key,
    };
    struct carrel_error err = { 0 };
    struct journal *journal = NULL;

    if (journal_open(&options, &journal, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.message);
    return journal;
}

static inline void bench_add(struct journal *journal, const char *event, const char *text)
{
    struct carrel_error err = { 0 };
    struct json *json = journal_begin(journal, event);

    json_str(json, "text", text);
    if (journal_add(journal, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.message);
}

static inline void bench_seal(struct journal *journal)
{
    struct carrel_error err = { 0 };
    char hash[JOURNAL_HASH];

    if (journal_seal(journal, "exited", hash, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.message);
}

/* A whole run with n records and a seal. */
static inline void bench_run(
        const struct bench *bench, const char *run, size_t n, const struct journal_key *key)
{
    AUTO(journal_close) struct journal *journal = bench_open(bench, run, key);
    char text[64];

    for (size_t i = 0; i < n; i++) {
        (void)snprintf(text, sizeof(text), "step %zu of \"%s\"\n", i, run);
        bench_add(journal, "process_started", text);
    }
    bench_seal(journal);
}

/* The path of a file below the runs. */
static inline const char *bench_path(
        const struct bench *bench, const char *name, char path[static 200])
{
    (void)snprintf(path, 200, "%s/%s", bench->runs, name);
    return path;
}

static inline void bench_read(const struct bench *bench, const char *name, struct buf *text)
{
    char path[200];

    buf_clear(text);
    CHECK_EQ(fd_add_file(AT_FDCWD, bench_path(bench, name, path), text, NULL), 0);
}

static inline void bench_write(
        const struct bench *bench, const char *name, const char *text, size_t len)
{
    char path[200];

    /* A new file: ext4 syncs a file that was truncated to nothing when it is closed. */
    (void)unlink(bench_path(bench, name, path));
    AUTO(fd_close) int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    CHECK(fd >= 0);
    CHECK_EQ(fd_write_all(fd, text, len), 0);
}

static inline void bench_append(const struct bench *bench, const char *name, const char *text)
{
    char path[200];

    AUTO(fd_close)
    int fd = open(bench_path(bench, name, path), O_WRONLY | O_APPEND | O_CLOEXEC);
    CHECK(fd >= 0);
    CHECK_EQ(fd_write_all(fd, text, strlen(text)), 0);
}
