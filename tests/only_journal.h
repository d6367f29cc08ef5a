/* only_journal.h - the journal of the only run below a state directory, for tests of core. */
#pragma once
#include "base/buf.h"
#include "base/fd.h"
#include "harness.h"
#include "journal/verify.h"
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

/* Reads and verifies it; there must be one. */
static enum carrel_record_state only_journal_read(
        const char *state, const char *what, struct buf *text)
{
    const struct journal_known known = { 0 };
    struct journal_verdict verdict = { 0 };
    const struct dirent *entry;
    char path[PATH_MAX];
    int n = 0;

    (void)snprintf(path, sizeof(path), "%s/carrel/runs", state);
    DIR *dir = opendir(path);
    while (dir && (entry = readdir(dir))) {
        if (entry->d_name[0] != 'R')
            continue;
        (void)snprintf(
                path, sizeof(path), "%s/carrel/runs/%s/journal.jsonl", state, entry->d_name);
        AUTO(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
        CHECK(fd >= 0);
        CHECK_EQ(journal_verify(fd, &known, &verdict, NULL), 0);
        CHECK_EQ(fd_add_file(AT_FDCWD, path, text, NULL), 0);
        n++;
    }
    if (dir)
        (void)closedir(dir);
    if (n != 1)
        test_fail(__FILE__, __LINE__, "%s: there are %d journals", what, n);
    return verdict.state;
}

/* It is sealed, and the last reason in it is this one. `what` is for messages. */
static void only_journal_check(const char *state, const char *what, const char *reason)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(1U << 20);
    char expected[64];
    const char *last = NULL;

    const enum carrel_record_state is = only_journal_read(state, what, &text);
    if (is != CARREL_RECORD_SEALED)
        test_fail(__FILE__, __LINE__, "%s: the journal is %s", what,
                carrel_record_state_name(is));
    (void)snprintf(expected, sizeof(expected), "\"reason\":\"%s\"", reason);
    for (const char *at = text.data; (at = strstr(at, "\"reason\":")); at++)
        last = at;
    if (!last || strncmp(last, expected, strlen(expected)) != 0)
        test_fail(__FILE__, __LINE__, "%s: the journal's last reason is not '%s':\n%s", what,
                reason, text.data);
}
