/* cgroup.c - groups, their limits and their figures. */
#include "runtime/local/cgroup/cgroup.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "runtime/local/cgroup/cgroup_io.h"
#include "runtime/local/cgroup/cgroup_limits.h"
#include "runtime/local/cgroup/freezer.h"
#include "runtime/runtime.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/* --- one group --- */

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

/* --- where groups can be made --- */

#define TOP "/sys/fs/cgroup"
#define OUR_GROUP "carrel"

static const char *const controller_names[CGROUP_CONTROLLERS] = {
    [CGROUP_MEMORY] = "memory",
    [CGROUP_PIDS] = "pids",
    [CGROUP_CPU] = "cpu",
    [CGROUP_IO] = "io",
};
#define V1_IO "blkio"

static bool is_cgroup2(const char *path)
{
    struct statfs st;

    return statfs(path, &st) == 0 && st.f_type == CGROUP2_SUPER_MAGIC;
}

/* Whether the space-separated list has the word. */
static bool has_word(const char *list, const char *word)
{
    size_t len = strlen(word);

    for (const char *at = list; (at = strstr(at, word)); at += len)
        if ((at == list || at[-1] == ' ') && (!at[len] || strchr(" \n", at[len])))
            return true;
    return false;
}

bool cgroup_lists(const char *dir, const char *file, const char *controller)
{
    char path[1024];
    char list[512];

    (void)snprintf(path, sizeof(path), "%s/%s", dir, file);
    return fd_read_file(AT_FDCWD, path, list, sizeof(list)) >= 0 && has_word(list, controller);
}

/* Those that every group has. */
static bool has_controllers(const char *dir, const char *file)
{
    char path[1024];
    char list[512];

    (void)snprintf(path, sizeof(path), "%s/%s", dir, file);
    if (fd_read_file(AT_FDCWD, path, list, sizeof(list)) < 0)
        return false;
    for (size_t i = 0; i < CGROUP_IO; i++)
        if (!has_word(list, controller_names[i]))
            return false;
    return true;
}

static bool can_write(const char *dir, const char *file)
{
    char path[1024];

    (void)snprintf(path, sizeof(path), "%s/%s", dir, file);
    return faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0;
}

/* The first controller that the group lacks, or NULL. */
static const char *missing_controller(const char *dir)
{
    for (size_t i = 0; i < CGROUP_IO; i++)
        if (!cgroup_lists(dir, "cgroup.controllers", controller_names[i]))
            return controller_names[i];
    return NULL;
}

/* Whether its children have the controllers, or can get them: a group without processes. */
static bool can_limit_children(const char *dir)
{
    char path[1024];
    char pid[16];

    if (has_controllers(dir, "cgroup.subtree_control"))
        return true;
    (void)snprintf(path, sizeof(path), "%s/cgroup.procs", dir);
    return has_controllers(dir, "cgroup.controllers") &&
           can_write(dir, "cgroup.subtree_control") &&
           fd_read_file(AT_FDCWD, path, pid, sizeof(pid)) == 0;
}

/*
 * Rootless: the nearest group above ours that was delegated to us and gives its children the
 * controllers. It must be writable itself, because moving a process requires write access to
 * the common ancestor; our own group does not work, since a group with processes cannot have
 * limited children.
 */
static void find_delegated(struct cgroup_parent *where)
{
    char own[512];
    char dir[600];

    (void)snprintf(where->why, sizeof(where->why),
            "no cgroup is delegated to this user; log in through systemd, or start carrel by "
            "'systemd-run --user --scope -p Delegate=yes carrel ...'");
    ssize_t n = fd_read_file(AT_FDCWD, "/proc/self/cgroup", own, sizeof(own));
    if (n <= 0 || strncmp(own, "0::/", 4) != 0)
        return;
    own[strcspn(own, "\n")] = '\0';
    char *path = own + 3;
    for (;;) {
        char *slash = strrchr(path, '/');
        if (!slash || slash == path)
            return;
        *slash = '\0';
        (void)snprintf(dir, sizeof(dir), TOP "%s", path);
        if (!can_write(dir, "cgroup.procs"))
            return;
        if (faccessat(AT_FDCWD, dir, W_OK, AT_EACCESS) < 0)
            continue;
        if (can_limit_children(dir))
            break;
        const char *missing = missing_controller(dir);
        if (missing)
            (void)snprintf(where->why, sizeof(where->why),
                    "the cgroup that is delegated to this user lacks the %s controller; as "
                    "root: "
                    "'systemctl edit user@.service', [Service] Delegate=memory pids cpu, and "
                    "log "
                    "in anew",
                    missing);
    }
    where->version = CGROUP_V2;
    (void)snprintf(where->parent, sizeof(where->parent), "%.500s", dir);
}

static bool has_v1(void)
{
    char dir[64];

    for (size_t i = 0; i < CGROUP_IO; i++) {
        (void)snprintf(dir, sizeof(dir), TOP "/%s", controller_names[i]);
        if (faccessat(AT_FDCWD, dir, F_OK, 0) == 0)
            return true;
    }
    return false;
}

static void find_v1(struct cgroup_parent *where)
{
    char dir[64];

    for (size_t i = 0; i < CGROUP_IO; i++) {
        (void)snprintf(dir, sizeof(dir), TOP "/%s", controller_names[i]);
        if (faccessat(AT_FDCWD, dir, W_OK, AT_EACCESS) < 0) {
            int code = errno;
            (void)snprintf(where->why, sizeof(where->why),
                    "the cgroup v1 hierarchy %s cannot be used (%s); mount it writable, or "
                    "boot "
                    "with cgroup v2",
                    dir, strerrordesc_np(code));
            return;
        }
    }
    where->version = CGROUP_V1;
}

/*
 * Only the machine's root group may both have processes and limit its children; it has no type.
 */
static bool is_true_root(const char *dir)
{
    char path[1024];

    (void)snprintf(path, sizeof(path), "%s/cgroup.type", dir);
    return faccessat(AT_FDCWD, path, F_OK, 0) < 0;
}

void cgroup_find(struct cgroup_parent *where)
{
    bool is_v2 = is_cgroup2(TOP);

    *where = (struct cgroup_parent){ .version = CGROUP_NONE };
    if (!is_v2 && !has_v1()) {
        (void)snprintf(where->why, sizeof(where->why),
                "no cgroups are mounted; as root: mount -t cgroup2 cgroup2 " TOP);
    } else if (geteuid() != 0 && is_v2) {
        find_delegated(where);
    } else if (geteuid() != 0) {
        (void)snprintf(where->why, sizeof(where->why),
                "this machine has cgroup v1, which cannot be delegated to an ordinary user; "
                "run "
                "carrel as root, or boot with cgroup v2");
    } else if (!is_v2) {
        find_v1(where);
    } else if (faccessat(AT_FDCWD, TOP, W_OK, AT_EACCESS) < 0 ||
               !has_controllers(TOP, "cgroup.controllers")) {
        (void)snprintf(where->why, sizeof(where->why),
                TOP " is read-only or lacks the memory, pids and cpu controllers; mount it "
                    "writable (in a container: a private cgroup namespace with write access)");
    } else if (!is_true_root(TOP) && !can_limit_children(TOP)) {
        (void)snprintf(where->why, sizeof(where->why),
                TOP " is a container's and holds processes, so that groups below it cannot be "
                    "limited; move them: mkdir " TOP "/main, and write each pid in " TOP
                    "/cgroup.procs to " TOP "/main/cgroup.procs");
    } else {
        where->version = CGROUP_V2;
        (void)snprintf(where->parent, sizeof(where->parent), TOP);
    }
}

/* The carrel group, the parent of all sandboxes' groups. */
static void parent_path(
        const struct cgroup_parent *where, size_t controller, char path[static 1024])
{
    if (where->version == CGROUP_V1)
        (void)snprintf(path, 1024, TOP "/%s/" OUR_GROUP,
                controller == CGROUP_IO ? V1_IO : controller_names[controller]);
    else
        (void)snprintf(path, 1024, "%s/" OUR_GROUP, where->parent);
}

static int make_parent(
        const struct cgroup_parent *where, size_t controller, struct carrel_error *err)
{
    char path[1024];

    parent_path(where, controller, path);
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0)
        return fd;
    if (mkdir(path, 0755) < 0 && errno != EEXIST)
        return err_set_errno(err, -errno, "make the cgroup '%s'", path);
    fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? err_set_errno(err, -errno, "open the cgroup '%s'", path) : fd;
}

/* v2: children get controllers only if every group above enables them. */
static int pass_on_controllers(
        const struct cgroup_parent *where, int parent, bool has_io, struct carrel_error *err)
{
    const char *all = has_io ? "+memory +pids +cpu +io" : "+memory +pids +cpu";
    char list[256];

    ssize_t n = fd_read_file(parent, "cgroup.subtree_control", list, sizeof(list));
    if (n > 0 && has_word(list, "memory") && has_word(list, "pids") && has_word(list, "cpu") &&
            (!has_io || has_word(list, "io")))
        return 0;
    if (!has_controllers(where->parent, "cgroup.subtree_control") ||
            (has_io && !cgroup_lists(where->parent, "cgroup.subtree_control", "io"))) {
        char path[1024];
        (void)snprintf(path, sizeof(path), "%s/cgroup.subtree_control", where->parent);
        int r = fd_write_file(AT_FDCWD, path, all);
        if (r < 0)
            return err_set_errno(err, r, "write '%s' to %s", all, path);
    }
    int r = fd_write_file(parent, "cgroup.subtree_control", all);
    return r < 0 ? err_set_errno(
                           err, r, "pass controllers on in '%s/" OUR_GROUP "'", where->parent)
                 : 0;
}

static int make_dir(const struct cgroup_parent *where, struct cgroup *group, size_t i,
        struct carrel_error *err)
{
    if (mkdirat(group->parent[i], group->name, 0755) == 0)
        return 0;
    int code = -errno;
    /* We hold the lock on the name, so a crash left it, perhaps with groups we do not make. */
    if (code == -EEXIST && i == 0)
        code = cgroup_sweep(where, group->name);
    else if (code == -EEXIST)
        code = freezer_sweep(group->version, group->parent[i], group->name);
    if (code == 0)
        code = group_sweep(group->parent[i], group->name);
    if (code == 0 && mkdirat(group->parent[i], group->name, 0755) < 0)
        code = -errno;
    return code < 0 ? err_set_errno(err, code, "make the %s cgroup '%s'", controller_names[i],
                              group->name)
                    : 0;
}

/* "name/file", to be opened below the parent: no descriptor of the group itself is needed. */
static const char *file_of(const struct cgroup *group, const char *file, char path[static 128])
{
    (void)snprintf(path, 128, "%s/%s", group->name, file);
    return path;
}

int cgroup_create(struct cgroup *group, const struct cgroup_parent *where, const char *name,
        const struct sandbox_limits *limits, struct carrel_error *err)
{
    const bool has_io = limits->value[LIMIT_IO_READ] || limits->value[LIMIT_IO_WRITE];
    size_t n = where->version == CGROUP_V2 ? 1 : has_io ? CGROUP_CONTROLLERS : CGROUP_IO;
    int r = 0;

    group->version = (int)where->version;
    (void)snprintf(group->name, sizeof(group->name), "%s", name);
    for (size_t i = 0; r == 0 && i < n; i++) {
        r = make_parent(where, i, err);
        if (r < 0)
            break;
        group->parent[i] = r;
        r = where->version == CGROUP_V2
                    ? pass_on_controllers(where, group->parent[i], has_io, err)
                    : 0;
        if (r == 0)
            r = make_dir(where, group, i, err);
    }
    if (r == 0)
        r = cgroup_set_limits(group, limits, err);
    if (r == 0)
        r = cgroup_set_io(group, limits, err);
    if (r < 0)
        cgroup_remove(group);
    return r;
}

int cgroup_open_joins(
        const struct cgroup *group, int fds[CGROUP_CONTROLLERS], struct carrel_error *err)
{
    char path[128];

    if (group->version != CGROUP_V1)
        return 0;
    size_t i = 0;
    for (; i < CGROUP_CONTROLLERS && group->parent[i] >= 0; i++) {
        fds[i] = openat(group->parent[i], file_of(group, "tasks", path), O_WRONLY | O_CLOEXEC);
        if (fds[i] >= 0)
            continue;
        int code = -errno;
        while (i-- > 0)
            fd_close(fds[i]);
        return err_set_errno(err, code, "open the cgroup's tasks");
    }
    return (int)i;
}

int cgroup_open(const struct cgroup *group)
{
    if (group->version != CGROUP_V2)
        return -ENOTSUP;
    int fd = openat(group->parent[0], group->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

static uint64_t read_number(const struct cgroup *group, size_t i, const char *file)
{
    char path[128];
    char text[64];

    if (fd_read_file(group->parent[i], file_of(group, file, path), text, sizeof(text)) <= 0 ||
            text[0] < '0' || text[0] > '9')
        return USAGE_UNKNOWN;
    return strtoull(text, NULL, 10);
}

/* The number after `key` in a file of "key number" lines. */
static uint64_t read_keyed(
        const struct cgroup *group, size_t i, const char *file, const char *key)
{
    char path[128];
    char text[2048];
    size_t len = strlen(key);

    if (fd_read_file(group->parent[i], file_of(group, file, path), text, sizeof(text)) <= 0)
        return USAGE_UNKNOWN;
    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n')
        if (strncmp(line, key, len) == 0 && line[len] == ' ')
            return strtoull(line + len + 1, NULL, 10);
    return USAGE_UNKNOWN;
}

void cgroup_refusals(const struct cgroup *group, struct sandbox_usage *usage)
{
    bool is_v1 = group->version == CGROUP_V1;

    if (group->version == CGROUP_NONE)
        return;
    usage->oom_kills = read_keyed(
            group, CGROUP_MEMORY, is_v1 ? "memory.oom_control" : "memory.events", "oom_kill");
    usage->pids_refused = read_keyed(group, is_v1 ? CGROUP_PIDS : 0, "pids.events", "max");
}

void cgroup_usage(const struct cgroup *group, struct sandbox_usage *usage)
{
    bool is_v1 = group->version == CGROUP_V1;

    if (group->version == CGROUP_NONE)
        return;
    usage->peak_memory_bytes = read_number(
            group, CGROUP_MEMORY, is_v1 ? "memory.max_usage_in_bytes" : "memory.peak");
    uint64_t peak = read_number(group, is_v1 ? CGROUP_PIDS : 0, "pids.peak");
    usage->peak_pids = peak == USAGE_UNKNOWN || peak == 0 ? peak : peak - 1; /* init */
    cgroup_refusals(group, usage);
}

uint64_t cgroup_cpu_ms(const struct cgroup *group)
{
    if (group->version == CGROUP_NONE)
        return USAGE_UNKNOWN;
    if (group->version == CGROUP_V1) {
        uint64_t ns = read_number(group, CGROUP_CPU, "cpuacct.usage");
        return ns == USAGE_UNKNOWN ? ns : ns / 1000000;
    }
    uint64_t us = read_keyed(group, 0, "cpu.stat", "usage_usec");
    return us == USAGE_UNKNOWN ? us : us / 1000;
}

int cgroup_members(
        const struct cgroup *group, pid_t *pids, size_t max, struct carrel_error *err)
{
    size_t i = group->version == CGROUP_V1 ? CGROUP_PIDS : 0;

    int n = group_list(group->parent[i], group->name, pids, max, err);
    if (n < 0 || group->version == CGROUP_V1 || group->freezer < 0)
        return n;
    /* After the group itself: a process that is moved meanwhile is listed twice, not missed. */
    int frozen = group_list(group->freezer, FREEZER_BELOW, pids + n, max - (size_t)n, err);
    return frozen < 0 ? frozen : n + frozen;
}

/* The first one last: while it exists, a sweep finds the others. */
void cgroup_remove(struct cgroup *group)
{
    freezer_remove(group);
    for (size_t i = CGROUP_CONTROLLERS; i-- > 0;) {
        if (group->parent[i] >= 0)
            (void)group_remove(group->parent[i], group->name);
        fd_close(fd_steal(&group->parent[i]));
    }
    group->version = CGROUP_NONE;
}

static size_t count_parents(const struct cgroup_parent *where)
{
    static const size_t counts[] = {
        [CGROUP_NONE] = 0,
        [CGROUP_V1] = CGROUP_CONTROLLERS,
        [CGROUP_V2] = 1,
    };

    return counts[where->version];
}

static int open_parent(const struct cgroup_parent *where, size_t i)
{
    char path[1024];

    parent_path(where, i, path);
    return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

int cgroup_sweep(const struct cgroup_parent *where, const char *name)
{
    bool is_thawed = false;

    for (size_t i = count_parents(where); i-- > 0;) {
        AUTO(fd_close) int parent = open_parent(where, i);
        if (parent < 0)
            continue;
        int r = is_thawed ? 0 : freezer_sweep((int)where->version, parent, name);
        is_thawed = true;
        if (r == 0)
            r = group_sweep(parent, name);
        if (r < 0)
            return r;
    }
    return 0;
}

void cgroup_each(const struct cgroup_parent *where,
        bool (*visit)(void *target, const char *name), void *target)
{
    group_each(count_parents(where) > 0 ? open_parent(where, 0) : -1, visit, target);
}

void cgroup_each_lost(const struct cgroup_parent *where,
        bool (*visit)(void *target, const char *name), void *target)
{
    if (where->version == CGROUP_V1)
        freezer_each(visit, target);
}
