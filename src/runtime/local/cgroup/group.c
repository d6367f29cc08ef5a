/* group.c - listing, emptying and removing. */
#include "runtime/local/cgroup/group.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int group_list(int parent, const char *name, pid_t *pids, size_t max, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf list = BUF_INIT(max * 12 + 1);
    size_t n = 0;
    char path[128];

    (void)snprintf(path, sizeof(path), "%s/cgroup.procs", name);
    int r = fd_add_file(parent, path, &list, err);
    if (r < 0)
        return r == -EFBIG ? -E2BIG : r;
    for (const char *at = list.data; at && *at; at += strcspn(at, "\n"), at += *at == '\n') {
        if (n == max)
            return err_set(err, -E2BIG, "more than %zu processes", max);
        pids[n++] = (pid_t)strtol(at, NULL, 10);
    }
    return (int)n;
}

void group_each(int parent, bool (*visit)(void *target, const char *name), void *target)
{
    DIR *list = parent < 0 ? NULL : fdopendir(parent);
    const struct dirent *entry;

    if (!list) {
        fd_close(parent);
        return; /* no group was ever created here */
    }
    bool goes_on = true;
    while (goes_on && (entry = readdir(list)))
        if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
            goes_on = visit(target, entry->d_name);
    (void)closedir(list);
}

/* Kills everything in a group without an owner. */
static void kill_members(int dir)
{
    char list[4096];

    if (fd_write_file(dir, "cgroup.kill", "1") == 0)
        return;
    for (int round = 0; round < 100; round++) {
        ssize_t n = fd_read_file(dir, "cgroup.procs", list, sizeof(list));
        if (n <= 0)
            return;
        for (char *at = list; *at; at += strcspn(at, "\n") + 1) {
            int pid = (int)strtol(at, NULL, 10);
            if (pid > 0)
                (void)kill(pid, SIGKILL);
            if (!strchr(at, '\n'))
                break;
        }
        (void)poll(NULL, 0, 2);
    }
}

/* A group may be busy for a moment after its last process was reaped. */
int group_remove(int parent, const char *name)
{
    for (int round = 0;; round++) {
        if (unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
            return 0;
        if (errno != EBUSY || round == 200)
            return -errno;
        (void)poll(NULL, 0, 1);
    }
}

int group_sweep(int parent, const char *name)
{
    AUTO(fd_close) int dir = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return errno == ENOENT ? 0 : -errno;
    kill_members(dir);
    return group_remove(parent, name);
}
