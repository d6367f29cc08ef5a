/* freezer.c - see freezer.h. */
#include "runtime/local/cgroup/freezer.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "runtime/local/cgroup/cgroup.h"
#include "runtime/wire.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define V1_TOP "/sys/fs/cgroup/freezer"
#define V1_PARENT V1_TOP "/carrel"
#define MAX_PIDS 65536U
/* How long a process may stay in an uninterruptible system call. */
#define FROZEN_NS (UINT64_C(10) * 1000000000)

/* Its name below group->freezer. */
static const char *name_of(const struct cgroup *group)
{
    return group->version == CGROUP_V1 ? group->name : FREEZER_BELOW;
}

static const char *file_of(const struct cgroup *group, const char *file, char path[static 128])
{
    (void)snprintf(path, 128, "%s/%s", name_of(group), file);
    return path;
}

static int open_parent(const struct cgroup *group)
{
    const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
    int fd = group->version == CGROUP_V1 ? open(V1_PARENT, flags)
                                         : openat(group->parent[0], group->name, flags);

    if (fd >= 0 || errno != ENOENT || group->version != CGROUP_V1)
        return fd < 0 ? -errno : fd;
    if (mkdir(V1_PARENT, 0755) < 0 && errno != EEXIST)
        return -errno;
    fd = open(V1_PARENT, flags);
    return fd < 0 ? -errno : fd;
}

int freezer_make(struct cgroup *group, struct carrel_error *err)
{
    if (group->version == CGROUP_NONE)
        return err_set(err, -ENOTSUP, "there is no cgroup");
    AUTO(fd_close) int parent = group->freezer < 0 ? open_parent(group) : -1;
    if (group->freezer < 0 && parent < 0)
        return err_set(err, -ENOTSUP, "there is no freezer: %s", strerrordesc_np(-parent));
    if (group->freezer < 0)
        group->freezer = fd_steal(&parent);
    if (mkdirat(group->freezer, name_of(group), 0755) == 0 || errno == EEXIST)
        return 0;
    return err_set_errno(err, -errno, "make the cgroup '%s'", name_of(group));
}

int freezer_open(const struct cgroup *group)
{
    char path[128];

    if (group->version != CGROUP_V1)
        return -ENOTSUP;
    int fd =
            openat(group->freezer, file_of(group, "freezer.state", path), O_WRONLY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

static int set_frozen(const struct cgroup *group, bool is_frozen)
{
    char path[128];

    if (group->version == CGROUP_V1)
        return fd_write_file(group->freezer, file_of(group, "freezer.state", path),
                is_frozen ? "FROZEN" : WIRE_THAW);
    return fd_write_file(
            group->freezer, file_of(group, "cgroup.freeze", path), is_frozen ? "1" : "0");
}

int freezer_thaw(const struct cgroup *group)
{
    return group->freezer < 0 ? 0 : set_frozen(group, false);
}

static bool is_frozen(const struct cgroup *group)
{
    const bool is_v1 = group->version == CGROUP_V1;
    char path[128];
    char text[256];

    file_of(group, is_v1 ? "freezer.state" : "cgroup.events", path);
    return fd_read_file(group->freezer, path, text, sizeof(text)) > 0 &&
           strstr(text, is_v1 ? "FROZEN" : "frozen 1");
}

struct lists {
    pid_t outside[MAX_PIDS];
    pid_t inside[MAX_PIDS];
};

/*
 * Lists what still has to be moved. v2 shows in a group only processes that are in no child
 * group; v1 has two hierarchies, and both lists are sorted or at least short.
 */
static int list_outside(
        const struct cgroup *group, pid_t init, struct lists *lists, struct carrel_error *err)
{
    const bool is_v1 = group->version == CGROUP_V1;
    const int parent = group->parent[is_v1 ? CGROUP_PIDS : 0];
    int kept = 0;
    int n_inside = 0;

    int n = group_list(parent, group->name, lists->outside, MAX_PIDS, err);
    if (n > 0 && is_v1)
        n_inside = group_list(group->freezer, name_of(group), lists->inside, MAX_PIDS, err);
    if (n < 0 || n_inside < 0)
        return n < 0 ? n : n_inside;
    for (int i = 0; i < n; i++) {
        bool is_inside = lists->outside[i] == init;
        for (int j = 0; !is_inside && j < n_inside; j++)
            is_inside = lists->inside[j] == lists->outside[i];
        if (!is_inside)
            lists->outside[kept++] = lists->outside[i];
    }
    return kept;
}

static int move(const struct cgroup *group, pid_t pid, struct carrel_error *err)
{
    char path[128];
    char text[16];

    (void)snprintf(text, sizeof(text), "%d", (int)pid);
    int r = fd_write_file(group->freezer, file_of(group, "cgroup.procs", path), text);
    if (r == -ESRCH || r == 0) /* it has exited: fine */
        return 0;
    return err_set_errno(err, r, "move process %s to the freezer", text);
}

/*
 * A process that was moved stops at once. Others may still fork, so this repeats until a pass
 * finds none outside: a process that is found can have forked only before it was moved, and the
 * sandbox's limit bounds the number.
 */
static int gather(const struct cgroup *group, pid_t init, struct carrel_error *err)
{
    const uint64_t deadline = clock_ns() + FROZEN_NS;
    AUTO(free)
    struct lists *lists =
            malloc(sizeof(*lists)); /* pages are only allocated as far as they are used */

    if (!lists)
        return err_set_errno(err, -ENOMEM, "list processes");
    for (;;) {
        int n = list_outside(group, init, lists, err);
        if (n < 0 || (n == 0 && is_frozen(group)))
            return n;
        for (int i = 0; i < n; i++) {
            int r = move(group, lists->outside[i], err);
            if (r < 0)
                return r;
        }
        if (clock_ns() > deadline)
            return err_set(err, -EBUSY, "a process is busy in the kernel and does not stop");
        if (n > 0)
            continue;
        (void)poll(NULL, 0, 1); /* v1 has no event to wait for */
        /*
         * v1 tries once: a process that began to wait for its vfork only then needs another
         * request.
         */
        (void)set_frozen(group, true);
    }
}

int freezer_freeze(const struct cgroup *group, pid_t init, struct carrel_error *err)
{
    int r = set_frozen(group, true);
    if (r < 0)
        return err_set_errno(err, r, "freeze the cgroup '%s'", name_of(group));
    r = gather(group, init, err);
    if (r < 0)
        (void)set_frozen(group, false); /* the error above is what matters */
    return r;
}

void freezer_remove(struct cgroup *group)
{
    if (group->freezer >= 0)
        (void)group_remove(group->freezer, name_of(group));
    fd_close(fd_steal(&group->freezer));
}

int freezer_sweep(int version, int parent, const char *name)
{
    char path[128];

    if (version == CGROUP_V2) {
        (void)snprintf(path, sizeof(path), "%s/" FREEZER_BELOW, name);
        return group_sweep(parent, path);
    }
    AUTO(fd_close) int freezer = open(V1_PARENT, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (freezer < 0)
        return 0; /* never paused here */
    (void)snprintf(path, sizeof(path), "%s/freezer.state", name);
    (void)fd_write_file(freezer, path, WIRE_THAW); /* else they cannot die */
    return group_sweep(freezer, name);
}

void freezer_each(bool (*visit)(void *target, const char *name), void *target)
{
    group_each(open(V1_PARENT, O_RDONLY | O_DIRECTORY | O_CLOEXEC), visit, target);
}
