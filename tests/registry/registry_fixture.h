/* registry_fixture.h - for tests: a private registry, and owners in processes. */
#pragma once
#include "base/err.h"
#include "base/fd.h"
#include "harness.h"
#include "registry/registry.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct registry reg = { .dir = -1 };
static char top[] = "/tmp/carrel-registry.XXXXXX";
static struct carrel_error err;

static inline void open_registry(void)
{
    CHECK(test_mkdtemp(top));
    AUTO(fd_close) int dir = open(top, O_PATH | O_DIRECTORY | O_CLOEXEC);
    CHECK(dir >= 0);
    CHECK_EQ(registry_open_at(&reg, dir, &err), 0);
}

/* The rest of the test runs without privileges. */
static inline void open_registry_as_user(void)
{
    CHECK(test_mkdtemp(top));
    if (geteuid() == 0) {
        CHECK_EQ(chown(top, 65534, 65534), 0);
        CHECK_EQ(setresgid(65534, 65534, 65534), 0);
        CHECK_EQ(setresuid(65534, 65534, 65534), 0);
    }
    AUTO(fd_close) int dir = open(top, O_PATH | O_DIRECTORY | O_CLOEXEC);
    CHECK(dir >= 0);
    CHECK_EQ(registry_open_at(&reg, dir, &err), 0);
}

static inline struct registry_entry *claim(const char *id, const char *name)
{
    const struct registry_request request = { .id = id, .name = name };
    struct registry_entry *entry = NULL;

    if (registry_claim(&reg, &request, &entry, &err) < 0)
        test_fail(__FILE__, __LINE__, "claim %s: %s", id, err.message);
    return entry;
}

static inline void let_go(struct registry_entry *entry)
{
    CHECK_EQ(registry_remove(entry, &err), 0);
    registry_entry_free(entry);
}

/* How many names are in a directory of the registry, without the hidden ones. */
static inline int count_in(const char *path)
{
    int n = 0;
    int fd = openat(reg.dir, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fdopendir(fd);

    CHECK(dir);
    for (const struct dirent *at; (at = readdir(dir));)
        n += at->d_name[0] != '.';
    CHECK_EQ(closedir(dir), 0);
    return n;
}

/* "lock", "names", "status" and nothing else. */
static inline void check_empty(void)
{
    CHECK_EQ(count_in("names"), 0);
    CHECK_EQ(count_in("status"), 0);
    CHECK_EQ(count_in("."), 3);
}

struct counts {
    int alive;
    int dead;
    int waiting;
};

static inline int count_view(void *context, const struct registry_view *view)
{
    struct counts *counts = context;

    if (!view->is_alive)
        counts->dead++;
    else if (view->status.state == REGISTRY_WAITING)
        counts->waiting++;
    else
        counts->alive++;
    return 0;
}

static inline struct counts count_all(void)
{
    struct counts counts = { 0 };

    CHECK_EQ(registry_each(&reg, count_view, &counts, &err), 0);
    return counts;
}

static inline int reap(pid_t pid)
{
    int status;

    CHECK_EQ(waitpid(pid, &status, 0), pid);
    return status;
}
