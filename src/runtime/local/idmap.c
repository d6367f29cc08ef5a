/* idmap.c - uid_map, gid_map and namespaces for id-mapped mounts. */
#include "runtime/local/idmap.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/process.h"
#include "runtime/local/inside/sys.h"
#include "runtime/local/plan.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define HELPER_STACK (16U << 10)

static int write_map(pid_t pid, const char *file, const char *text, struct carrel_error *err)
{
    char path[64];

    (void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
    int r = fd_write_file(AT_FDCWD, path, text);
    return r < 0 ? err_set_errno(err, r, "write '%s' to %s", text, path) : 0;
}

int idmap_write(pid_t child, const struct plan *plan, uint32_t base, struct carrel_error *err)
{
    char uids[64];
    char gids[64];
    int r = 0;

    if (plan->has_subids)
        return subids_map(child, &plan->subids, plan->uid, plan->gid, err);
    if (plan->has_range) {
        (void)snprintf(uids, sizeof(uids), "0 %u %u", base, PLAN_RANGE);
        (void)snprintf(gids, sizeof(gids), "0 %u %u", base, PLAN_RANGE);
    } else {
        (void)snprintf(uids, sizeof(uids), "%u %u 1", (unsigned)plan->uid, (unsigned)geteuid());
        (void)snprintf(gids, sizeof(gids), "%u %u 1", (unsigned)plan->gid, (unsigned)getegid());
        r = write_map(child, "setgroups", "deny", err); /* required for a single gid */
    }
    if (r == 0)
        r = write_map(child, "uid_map", uids, err);
    if (r == 0)
        r = write_map(child, "gid_map", gids, err);
    return r;
}

/* Shares our memory: a copy would cost more than everything else here. */
static int wait_for_end(void *host)
{
    /* If the host is killed now, this process is killed too. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != *(const pid_t *)host)
        _exit(1);
    for (;;)
        (void)pause();
}

int idmap_open(uid_t uid_on_disk, uid_t uid_shown, gid_t gid_on_disk, gid_t gid_shown,
        struct carrel_error *err)
{
    char text[64];
    int pidfd = -1;
    pid_t host = getpid();
    sigset_t before;
    AUTO(free) char *stack = malloc(HELPER_STACK);

    if (!stack)
        return err_set_errno(err, -ENOMEM, "make a user namespace for an id-mapped mount");
    /* A namespace needs a process to exist; the process may exit once we hold the file. */
    signals_block(&before);
    pid_t pid = clone(wait_for_end, stack + HELPER_STACK,
            CLONE_VM | CLONE_NEWUSER | CLONE_PIDFD, &host, &pidfd);
    int code = -errno;
    signals_unblock(&before);
    if (pid < 0)
        return err_set_errno(err, code, "make a user namespace for an id-mapped mount");
    AUTO(fd_close) int held = pidfd;

    (void)snprintf(text, sizeof(text), "%u %u 1", (unsigned)uid_on_disk, (unsigned)uid_shown);
    int r = write_map(pid, "uid_map", text, err);
    (void)snprintf(text, sizeof(text), "%u %u 1", (unsigned)gid_on_disk, (unsigned)gid_shown);
    if (r == 0)
        r = write_map(pid, "gid_map", text, err);
    (void)snprintf(text, sizeof(text), "/proc/%d/ns/user", (int)pid);
    int ns = r < 0 ? -1 : open(text, O_RDONLY | O_CLOEXEC);
    if (r == 0 && ns < 0)
        r = err_set_errno(err, -errno, "open '%s'", text);
    if (sys_pidfd_send_signal(held, SIGKILL) < 0) { /* a wait for it could take for ever */
        (void)ptr_steal(&stack);                    /* the process still uses it */
        r = err_set_errno(err, -errno, "kill the helper for an id-mapped mount");
        fd_close(ns);
        return r;
    }
    (void)waitid(P_PIDFD, (id_t)held, &(siginfo_t){ 0 }, WEXITED | __WALL);
    return r < 0 ? r : ns;
}
