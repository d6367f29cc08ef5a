/* protection.c - the table of protections. */
#include "runtime/protection.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/str.h"
#include <assert.h>
#include <errno.h>
#include <stdio.h>

struct row {
    char name[16];
    char meaning[72];
};

static const struct row rows[PROTECT_COUNT] = {
    [PROTECT_USERNS] = { "userns", "own user namespace: nothing inside is the host's root" },
    [PROTECT_MOUNTNS] = { "mountns", "own mount namespace: the host's files have no path" },
    [PROTECT_PIDNS] = { "pidns", "own process namespace: other processes have no number" },
    [PROTECT_NETNS] = { "netns", "own network namespace with nothing but loopback" },
    [PROTECT_IPCNS] = { "ipcns", "own System V and POSIX message queues and shared memory" },
    [PROTECT_UTSNS] = { "utsns", "own host name" },
    [PROTECT_CGROUPNS] = { "cgroupns", "the host's cgroup paths are hidden" },
    [PROTECT_IDMAP] = { "idmap", "user ids mapped away from the host's root" },
    [PROTECT_ROOTFS] = { "rootfs",
            "minimal read-only root, private writable space, nosuid, nodev" },
    [PROTECT_PROC] = { "proc", "/proc of the sandbox only, dangerous parts masked" },
    [PROTECT_DEV] = { "dev", "/dev with harmless devices and own terminals only" },
    [PROTECT_NO_NEW_PRIVS] = { "no_new_privs", "no program can gain privileges by exec" },
    [PROTECT_CAPABILITIES] = { "capabilities", "all capability sets empty" },
    [PROTECT_SECCOMP] = { "seccomp", "default-deny system call filter" },
    [PROTECT_LANDLOCK] = { "landlock",
            "second fence around files, signals and abstract sockets" },
    [PROTECT_NO_NESTING] = { "no_nesting", "no further user namespaces; own inotify budget" },
    [PROTECT_RLIMITS] = { "rlimits", "open files, locked memory, queues; core dumps off" },
    [PROTECT_MEMORY] = { "memory", "memory of the whole sandbox limited by cgroup" },
    [PROTECT_PIDS] = { "pids", "number of processes and threads limited by cgroup" },
    [PROTECT_CPU] = { "cpu", "processor time limited by cgroup" },
    [PROTECT_DISK] = { "disk", "writable space limited in bytes and inodes" },
    [PROTECT_SESSION] = { "session", "own session: no way to the caller's terminal" },
    [PROTECT_ENVIRONMENT] = { "environment", "no variable of the caller is passed on" },
    [PROTECT_DESCRIPTORS] = { "descriptors", "no open file of the caller is passed on" },
};

const char *protection_name(enum protection p)
{
    assert(p < PROTECT_COUNT);
    return rows[p].name;
}

const char *protection_meaning(enum protection p)
{
    assert(p < PROTECT_COUNT);
    return rows[p].meaning;
}

static int unknown(const char *name, size_t len, struct carrel_error *err)
{
    char list[400] = "";
    char shown[64];
    size_t at = 0;

    for (size_t i = 0; i < PROTECT_COUNT && at < sizeof(list); i++)
        at += (size_t)snprintf(
                list + at, sizeof(list) - at, "%s%s", i ? " " : "", rows[i].name);
    return err_set(err, -EINVAL, "unknown protection '%s'; expected one of: %s",
            str_escape(name, len, shown, sizeof(shown)), list);
}

int protection_parse(const char *text, uint64_t *set, struct carrel_error *err)
{
    uint64_t found = 0;

    for (;;) {
        size_t len = strcspn(text, ",");
        size_t i;
        for (i = 0; i < PROTECT_COUNT; i++)
            if (strlen(rows[i].name) == len && strncmp(rows[i].name, text, len) == 0)
                break;
        if (i == PROTECT_COUNT)
            return unknown(text, len, err);
        found |= PROTECT_BIT(i);
        if (!text[len])
            break;
        text += len + 1;
    }
    *set |= found;
    return 0;
}
