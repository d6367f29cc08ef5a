/* filters.c - counts in /proc, which shows the sandbox; without memory of its own. */
#include "runtime/serving/filters.h"
#include "base/auto.h"
#include "base/fd.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Entry of getdents64(): readdir() would allocate. */
struct entry {
    uint64_t ino;
    int64_t off;
    unsigned short len;
    unsigned char type;
    char name[];
};

/* Calls `visit` for each number in the directory. A process that has exited is passed over. */
static int each_number(
        int dir, int (*visit)(int dir, const char *name, void *target), void *target)
{
    char block[4096] __attribute__((aligned(8)));

    for (;;) {
        long n = syscall(SYS_getdents64, dir, block, sizeof(block));
        if (n <= 0)
            return n < 0 && errno != ENOENT ? -1 : 0;
        for (long at = 0; at < n;) {
            const struct entry *entry = (const struct entry *)(block + at);
            at += entry->len;
            if (entry->name[0] >= '1' && entry->name[0] <= '9' &&
                    visit(dir, entry->name, target) < 0)
                return -1;
        }
    }
}

/* The number of filters in a status file; -1: there is none, as when the thread has exited. */
static int filters_in(int dir, const char *path)
{
    static const char name[] = "\nSeccomp_filters:";
    char status[4096];

    if (fd_read_file(dir, path, status, sizeof(status)) <= 0)
        return -1;
    const char *line = strstr(status, name);
    return line ? (int)strtol(line + strlen(name), NULL, 10) : -1;
}

struct sum {
    int ours; /* that each program begins with */
    int rest;
};

static int add_thread(int dir, const char *name, void *target)
{
    struct sum *sum = target;
    char path[64];

    (void)snprintf(path, sizeof(path), "%.20s/status", name);
    int n = filters_in(dir, path);
    if (n > sum->ours)
        sum->rest += n - sum->ours;
    return 0;
}

static int add_process(int dir, const char *name, void *target)
{
    char path[64];

    (void)snprintf(path, sizeof(path), "%.20s/task", name);
    AUTO(fd_close) int tasks = openat(dir, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (tasks < 0)
        return errno == ENOENT || errno == ESRCH ? 0 : -1;
    return each_number(tasks, add_thread, target);
}

int filters_count(void)
{
    AUTO(fd_close) int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct sum sum = { .ours = proc < 0 ? -1 : filters_in(proc, "self/status") + 1 };

    if (sum.ours < 1 || each_number(proc, add_process, &sum) < 0)
        return -1;
    return sum.rest;
}

int filters_grant(unsigned *granted)
{
    if (*granted >= FILTERS_MOST) {
        int n = filters_count();
        *granted = n < 0 ? FILTERS_MOST : (unsigned)n;
    }
    if (*granted >= FILTERS_MOST)
        return -ENOMEM;
    ++*granted;
    return 0;
}
