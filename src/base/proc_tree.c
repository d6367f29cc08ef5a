/* proc_tree.c - breadth-first over /proc/PID/task/TID/children; the list is also the queue. */
#include "base/proc_tree.h"
#include "base/auto.h"
#include "base/dir.h"
#include "base/fd.h"
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

struct found {
    pid_t *pids;
    size_t n;
    size_t max;
};

static bool is_gone(int r)
{
    return r == -ENOENT || r == -ESRCH;
}

/* The text is "12 345 6789 ". */
int proc_tree_children(int file, pid_t *pids, size_t max)
{
    char text[4096];
    size_t n_pids = 0;
    pid_t pid = 0;
    ssize_t n;

    while ((n = read(file, text, sizeof(text))) > 0) {
        for (ssize_t i = 0; i < n; i++) {
            if (text[i] >= '0' && text[i] <= '9') {
                pid = pid * 10 + (text[i] - '0');
                continue;
            }
            if (pid > 0 && n_pids == max)
                return -E2BIG;
            if (pid > 0)
                pids[n_pids++] = pid;
            pid = 0;
        }
    }
    return n < 0 ? -errno : (int)n_pids;
}

/* The kernel lists children per thread. */
static int ask_threads(struct found *found, pid_t pid)
{
    char path[64];

    (void)snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    AUTO(dir_close) DIR *tasks = dir_open(AT_FDCWD, path);
    if (!tasks)
        return -errno;
    for (const char *name; (name = dir_next(tasks));) {
        (void)snprintf(path, sizeof(path), "%.20s/children", name);
        AUTO(fd_close) int file = openat(dirfd(tasks), path, O_RDONLY | O_CLOEXEC);
        int r = file < 0 ? -errno
                         : proc_tree_children(
                                   file, found->pids + found->n, found->max - found->n);
        if (r < 0 && !is_gone(r))
            return r;
        found->n += r > 0 ? (size_t)r : 0;
    }
    return 0;
}

int proc_tree_list(pid_t top, pid_t *pids, size_t max)
{
    struct found found = { .pids = pids, .max = max };
    char path[64];

    (void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)top, (int)top);
    AUTO(fd_close) int known = open(path, O_RDONLY | O_CLOEXEC);
    if (known < 0)
        return -errno; /* else a kernel without the file would look like an empty list */
    int r = ask_threads(&found, top);
    for (size_t i = 0; r == 0 && i < found.n; i++) {
        r = ask_threads(&found, pids[i]);
        r = is_gone(r) ? 0 : r;
    }
    return r < 0 ? r : (int)found.n;
}
