/*
 * health.c - facts, and probes that name the cause.
 *
 * A sandbox that could be created is its own proof; what it has shown is not tried again. Each
 * missing protection is tried separately, each in a child that exits at once, because a
 * namespace cannot be left again.
 */
#include "runtime/local/health.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/subids.h"
#include "runtime/local/apparmor.h"
#include "runtime/local/cgroup/cgroup.h"
#include "runtime/local/cgroup/cgroup_io.h"
#include "runtime/local/host.h"
#include "runtime/local/idmap.h"
#include "runtime/local/inside/sys.h"
#include "runtime/local/plan.h"
#include "runtime/local/slot.h"
#include "runtime/runtime.h"
#include "runtime/serving/seccomp.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>

#define CGROUP_SET                                                                             \
    (PROTECT_BIT(PROTECT_MEMORY) | PROTECT_BIT(PROTECT_PIDS) | PROTECT_BIT(PROTECT_CPU))

static void fact(struct runtime_health *health, const char *name, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
static void fact(struct runtime_health *health, const char *name, const char *fmt, ...)
{
    va_list ap;

    if (health->n_facts == HEALTH_MAX_FACTS)
        return;
    struct health_fact *f = &health->facts[health->n_facts++];
    (void)snprintf(f->name, sizeof(f->name), "%s", name);
    va_start(ap, fmt);
    (void)vsnprintf(f->value, sizeof(f->value), fmt, ap);
    va_end(ap);
}

static void gap(struct runtime_health *health, uint64_t set, const char *remedy,
        const char *fmt, ...) __attribute__((format(printf, 4, 5)));
static void gap(
        struct runtime_health *health, uint64_t set, const char *remedy, const char *fmt, ...)
{
    va_list ap;

    if (health->n_gaps == HEALTH_MAX_GAPS)
        return;
    struct health_gap *g = &health->gaps[health->n_gaps++];
    g->set = set;
    (void)snprintf(g->remedy, sizeof(g->remedy), "%s", remedy);
    va_start(ap, fmt);
    (void)vsnprintf(g->why, sizeof(g->why), fmt, ap);
    va_end(ap);
}

/* Runs `try` in a child. Returns 0 or a negative errno: what it returned. */
static int in_child(int (*try)(int flags), int flags)
{
    int status;

    pid_t pid = fork();
    if (pid < 0)
        return -errno;
    if (pid == 0)
        _exit(-try(flags));
    if (waitpid(pid, &status, 0) < 0)
        return -errno;
    return WIFEXITED(status) ? -WEXITSTATUS(status) : -EINTR;
}

static int try_unshare(int flags)
{
    return unshare(flags) < 0 ? -errno : 0;
}

/* Mounts a new /proc: refused if parts of the existing one are covered by mounts. */
static int mount_proc(int flags)
{
    (void)flags;
    AUTO(fd_close) int fs = fsopen("proc", FSOPEN_CLOEXEC);
    if (fs < 0 || fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return -errno;
    AUTO(fd_close) int mount = fsmount(fs, FSMOUNT_CLOEXEC, 0);
    return mount < 0 ? -errno : 0;
}

static int try_proc(int flags)
{
    (void)flags;
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID) < 0)
        return -errno;
    return in_child(mount_proc, 0); /* only a child is in the new pid namespace */
}

static int try_mounts(int flags)
{
    (void)flags;
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
        return -errno;
    AUTO(fd_close)
    int tree = open_tree(AT_FDCWD, "/usr", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
    return tree < 0 ? -errno : 0;
}

/* Without privileges, as init is, for which the kernel keeps no room. */
static int try_filter(int flags)
{
    int listener = -1;

    (void)flags;
    if (unshare(CLONE_NEWUSER) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return -errno;
    return seccomp_install_init(&listener, NULL);
}

#define CONTAINER_REMEDY                                                                       \
    "if this is a container, start it with less confinement (docker: --security-opt "          \
    "seccomp=unconfined --security-opt systempaths=unconfined, or --privileged); else look "   \
    "at this machine's security modules (AppArmor, SELinux)"

/* The value of a sysctl; -1: it does not exist here. */
static long sysctl_value(const char *name)
{
    char path[128];
    char text[32];

    (void)snprintf(path, sizeof(path), "/proc/sys/%s", name);
    return fd_read_file(AT_FDCWD, path, text, sizeof(text)) <= 0 ? -1 : strtol(text, NULL, 10);
}

static void explain_userns(struct runtime_health *health, int code)
{
    static const struct {
        const char *name;
        const char *remedy;
    } switches[] = {
        { "user/max_user_namespaces", "as root: sysctl -w user.max_user_namespaces=10000" },
        { "kernel/unprivileged_userns_clone",
                "as root: sysctl -w kernel.unprivileged_userns_clone=1" },
    };
    const uint64_t set = PROTECT_BIT(PROTECT_USERNS);
    char remedy[APPARMOR_REMEDY_MAX];

    for (size_t i = 0; i < ARRAY_LEN(switches); i++) {
        if (sysctl_value(switches[i].name) != 0 ||
                (i > 0 && host_is_privileged())) /* the other applies only to ordinary users */
            continue;
        gap(health, set, switches[i].remedy,
                "user namespaces are switched off: /proc/sys/%s is 0 (%s)", switches[i].name,
                strerrordesc_np(-code));
        return;
    }
    if (apparmor_restricts_userns()) {
        apparmor_remedy(remedy);
        gap(health, set, remedy,
                "AppArmor restricts user namespaces to programs with a profile (%s)",
                strerrordesc_np(-code));
        return;
    }
    gap(health, set,
            code == -EINVAL || code == -ENOSYS ? "use a kernel built with CONFIG_USER_NS=y"
            : code == -ENOSPC || code == -EUSERS
                    ? "as root: sysctl -w user.max_user_namespaces=10000, and fewer nested "
                      "namespaces"
                    : CONTAINER_REMEDY ". Inside a chroot the kernel refuses as well",
            "no user namespace can be made: %s", strerrordesc_np(-code));
}

struct probe {
    enum protection protection;
    const char *what;
    int (*try)(int flags);
    int flags;
    const char *config;
    const char *limit;   /* sysctl that may be exhausted; NULL: none */
    const char *refused; /* what to do about EPERM; NULL: the general advice */
};

/* Each one in a user namespace of its own, as a sandbox creates it. */
static const struct probe probes[] = {
    { PROTECT_MOUNTNS, "mount namespace", try_unshare, CLONE_NEWUSER | CLONE_NEWNS,
            "CONFIG_NAMESPACES", "user.max_mnt_namespaces", NULL },
    { PROTECT_PIDNS, "process namespace", try_unshare, CLONE_NEWUSER | CLONE_NEWPID,
            "CONFIG_PID_NS", "user.max_pid_namespaces", NULL },
    { PROTECT_NETNS, "network namespace", try_unshare, CLONE_NEWUSER | CLONE_NEWNET,
            "CONFIG_NET_NS", "user.max_net_namespaces", NULL },
    { PROTECT_IPCNS, "ipc namespace", try_unshare, CLONE_NEWUSER | CLONE_NEWIPC,
            "CONFIG_IPC_NS", "user.max_ipc_namespaces", NULL },
    { PROTECT_UTSNS, "host name namespace", try_unshare, CLONE_NEWUSER | CLONE_NEWUTS,
            "CONFIG_UTS_NS", "user.max_uts_namespaces", NULL },
    { PROTECT_CGROUPNS, "cgroup namespace", try_unshare, CLONE_NEWUSER | CLONE_NEWCGROUP,
            "CONFIG_CGROUPS", "user.max_cgroup_namespaces", NULL },
    { PROTECT_ROOTFS, "copy of a mount for the new root", try_mounts, 0, "CONFIG_NAMESPACES",
            NULL, NULL },
    { PROTECT_PROC, "/proc of its own", try_proc, 0, "CONFIG_PROC_FS", NULL,
            "parts of the /proc here are covered by other mounts, as in a container: start it "
            "with --security-opt systempaths=unconfined (docker), --security-opt unmask=ALL "
            "(podman) or --privileged" },
    { PROTECT_SECCOMP, "system call filter", try_filter, 0, "CONFIG_SECCOMP_FILTER", NULL,
            NULL },
};

static void explain_probe(struct runtime_health *health, const struct probe *probe, int code)
{
    char remedy[sizeof(health->gaps[0].remedy)];

    if (code == -ENOSPC && probe->protection == PROTECT_SECCOMP)
        (void)snprintf(remedy, sizeof(remedy),
                "the machine's room for compiled filters is full: as root, raise "
                "net.core.bpf_jit_limit (sysctl), or end what attaches filters to thousands "
                "of sockets");
    else if (code == -ENOSPC || code == -EUSERS)
        (void)snprintf(remedy, sizeof(remedy), "as root: sysctl -w %s=10000",
                probe->limit ? probe->limit : "user.max_user_namespaces");
    else if (code == -EINVAL || code == -ENOSYS || code == -ENODEV || code == -EOPNOTSUPP)
        (void)snprintf(remedy, sizeof(remedy), "use a kernel built with %s=y", probe->config);
    else
        (void)snprintf(remedy, sizeof(remedy), "%s",
                probe->refused ? probe->refused : CONTAINER_REMEDY);
    gap(health, PROTECT_BIT(probe->protection), remedy, "no %s can be made: %s", probe->what,
            strerrordesc_np(-code));
}

static void explain_probes(struct runtime_health *health, uint64_t missing)
{
    int r = in_child(try_unshare, CLONE_NEWUSER);
    if (r == 0 && apparmor_restricts_userns()) /* it is made, but gives no capability */
        r = in_child(try_unshare, CLONE_NEWUSER | CLONE_NEWUTS);
    if (r < 0) {
        explain_userns(health, r); /* everything else depends on it */
        return;
    }
    health->works |= PROTECT_BIT(PROTECT_USERNS);
    for (size_t i = 0; i < ARRAY_LEN(probes); i++) {
        const struct probe *probe = &probes[i];
        if (!(missing & PROTECT_BIT(probe->protection)))
            continue;
        r = in_child(probe->try, probe->flags);
        if (r < 0)
            explain_probe(health, probe, r);
        else
            health->works |= PROTECT_BIT(probe->protection);
    }
}

/* As root, ids come from a range that this root may not have, for example in a container. */
static void explain_ids(struct runtime_health *health)
{
    const unsigned long last = SLOT_FIRST_ID + (unsigned long)SLOT_COUNT * PLAN_RANGE - 1;
    unsigned long inside, outside, count;
    char text[4096];

    if (!host_is_privileged() ||
            fd_read_file(AT_FDCWD, "/proc/self/uid_map", text, sizeof(text)) <= 0)
        return;
    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n')
        if (sscanf(line, "%lu %lu %lu", &inside, &outside, &count) == 3 &&
                inside <= SLOT_FIRST_ID && inside + count > last)
            return;
    gap(health, PROTECT_BIT(PROTECT_IDMAP),
            "run carrel as an ordinary user here, or give this container all user ids",
            "this root is not the machine's: it lacks the user ids %u to %lu, of which "
            "sandboxes get theirs",
            SLOT_FIRST_ID, last);
}

static void explain_landlock(struct runtime_health *health)
{
    errno = 0;
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    if (abi > 0)
        health->works |= PROTECT_BIT(PROTECT_LANDLOCK);
    else if (errno == EOPNOTSUPP)
        gap(health, PROTECT_BIT(PROTECT_LANDLOCK),
                "add landlock to the list of the kernel parameter lsm= (what runs now: cat "
                "/sys/kernel/security/lsm) and boot again",
                "this kernel has Landlock, but it was not switched on at boot");
    else
        gap(health, PROTECT_BIT(PROTECT_LANDLOCK),
                "use a kernel of version 5.13 or later built with CONFIG_SECURITY_LANDLOCK=y, "
                "with landlock in the list of the parameter lsm=; in a container its system "
                "call filter may also hide it",
                "this kernel has no Landlock (%s)", strerrordesc_np(errno));
}

/* cgroup_find() gives reason and remedy in one sentence, separated by a semicolon. */
static void explain_cgroup(struct runtime_health *health, const struct cgroup_parent *where)
{
    size_t len = strcspn(where->why, ";");
    const char *remedy = where->why[len] ? where->why + len + 1 : "";

    gap(health, CGROUP_SET, remedy + strspn(remedy, " "), "%.*s", (int)len, where->why);
}

static void tell_cgroup(struct runtime_health *health, const struct cgroup_parent *where)
{
    switch (where->version) {
    case CGROUP_V1:
        fact(health, "cgroup", "v1, groups in /sys/fs/cgroup/{memory,pids,cpu}/carrel");
        break;
    case CGROUP_V2:
        fact(health, "cgroup", "v2, groups in %.120s/carrel", where->parent);
        break;
    case CGROUP_NONE:
        fact(health, "cgroup", "none that this user can use");
        break;
    }
}

static void tell_disk_speed(struct runtime_health *health, const struct cgroup_parent *where)
{
    char why[CGROUP_WHY_MAX];

    if (!cgroup_can_limit_io(where, LIMIT_IO_READ, why))
        fact(health, "disk speed", "no --io-read, --io-write: %.160s", why);
    else if (!cgroup_can_limit_io(where, LIMIT_IO_WRITE, why))
        fact(health, "disk speed", "--io-read works; no --io-write: %.140s", why);
    else
        fact(health, "disk speed", "--io-read and --io-write work");
}

/* Whether a directory here can be id-mapped for a program with another user id on the host. */
static int try_idmapped_mount(struct carrel_error *err)
{
    const uint32_t id = SLOT_FIRST_ID + PLAN_USER;
    struct stat st;

    AUTO(fd_close)
    int mount = open_tree(AT_FDCWD, ".", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
    if (mount < 0 || fstat(mount, &st) < 0)
        return -errno;
    AUTO(fd_close) int ns = idmap_open(st.st_uid, id, st.st_gid, id, err);
    if (ns < 0)
        return ns;
    struct mount_attr attr = { .attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (unsigned)ns };
    if (mount_setattr(mount, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof(attr)) < 0)
        return -errno;
    return 0;
}

static void tell_idmapped_mounts(struct runtime_health *health)
{
    if (!host_is_privileged()) {
        fact(health, "id-mapped mounts", "not needed: files inside are this user's own");
        return;
    }
    int r = try_idmapped_mount(NULL);
    if (r == 0)
        fact(health, "id-mapped mounts",
                "work in the current directory: --workdir can be written");
    else
        fact(health, "id-mapped mounts",
                "not in the current directory (%s): --workdir only with :ro, or elsewhere",
                strerrordesc_np(-r));
}

/* Root's sandboxes use id ranges that belong to no account. */
static void tell_subids(struct runtime_health *health)
{
    struct carrel_error err = { 0 };
    struct subids ids;

    if (host_is_privileged())
        return;
    if (subids_find(&ids, &err) == 0)
        fact(health, "subordinate ids", "uids from %u, gids from %u: --ids sub", ids.uid,
                ids.gid);
    else
        fact(health, "subordinate ids", "none: %.180s", err.message);
}

static void tell_landlock(struct runtime_health *health)
{
    int abi = host_landlock_abi();

    if (abi > 0)
        fact(health, "landlock", "ABI %d", abi);
    else
        fact(health, "landlock", "not available");
}

void health_explain(uint64_t missing, struct runtime_health *health)
{
    struct cgroup_parent where;
    struct utsname name = { 0 };

    bool is_new_enough = uname(&name) == 0 && host_is_new_enough(name.release);
    fact(health, "kernel", "%s %s%s", name.release, name.machine,
            is_new_enough ? "" : " (too old)");
    cgroup_find(&where);
    tell_cgroup(health, &where);
    if (where.version != CGROUP_NONE)
        tell_disk_speed(health, &where);
    tell_landlock(health);
    if (!is_new_enough) {
        gap(health, missing, "use Linux 5.15 or later", "Linux %s is too old", name.release);
        return;
    }
    tell_idmapped_mounts(health);
    tell_subids(health);
    if (missing & ~(CGROUP_SET | PROTECT_BIT(PROTECT_LANDLOCK))) {
        explain_probes(health, missing);
        explain_ids(health);
    }
    if (missing & PROTECT_BIT(PROTECT_LANDLOCK))
        explain_landlock(health);
    if ((missing & CGROUP_SET) && where.version == CGROUP_NONE)
        explain_cgroup(health, &where);
}
