/* proc_tree.c - breadth-first over /proc/PID/task/TID/children; the list is also the queue. */
#include "base/proc_tree.h"
#include "base/auto.h"
#include "base/fd.h"
#include <dirent.h>
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

static void close_dir(DIR *dir)
{
    if (dir)
        (void)closedir(dir);
}
DEFINE_AUTO(DIR *, close_dir)

static bool is_gone(int r)
{
    return r == -ENOENT || r == -ESRCH;
}

/* The text is "12 345 6789 ". */
static int add_children(struct found *found, int file)
{
    char text[4096];
    pid_t pid = 0;
    ssize_t n;

    while ((n = read(file, text, sizeof(text))) > 0) {
        for (ssize_t i = 0; i < n; i++) {
            if (text[i] >= '0' && text[i] <= '9') {
                pid = pid * 10 + (text[i] - '0');
                continue;
            }
            if (pid > 0 && found->n == found->max)
                return -E2BIG;
            if (pid > 0)
                found->pids[found->n++] = pid;
            pid = 0;
        }
    }
    return n < 0 ? -errno : 0;
}

/* The kernel lists children per thread. */
static int ask_threads(struct found *found, pid_t pid)
{
    char path[64];
    const struct dirent *item;

    (void)snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    AUTO(close_dir) DIR *tasks = opendir(path);
    if (!tasks)
        return -errno;
    while ((item = readdir(tasks))) {
        if (item->d_name[0] == '.')
            continue;
        (void)snprintf(path, sizeof(path), "%.20s/children", item->d_name);
        AUTO(fd_close) int file = openat(dirfd(tasks), path, O_RDONLY | O_CLOEXEC);
        int r = file < 0 ? -errno : add_children(found, file);
        if (r < 0 && !is_gone(r))
            return r;
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
