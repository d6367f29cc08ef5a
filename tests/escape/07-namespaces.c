/*
 * Creates or enters namespaces: each new one gives capabilities, and access to more kernel
 * code.
 */
#include "attack.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

struct ns {
    const char *name; /* in /proc/PID/ns */
    unsigned long flag;
};

static const struct ns kinds[] = {
    { "user", CLONE_NEWUSER },
    { "mnt", CLONE_NEWNS },
    { "pid", CLONE_NEWPID },
    { "net", CLONE_NEWNET },
    { "ipc", CLONE_NEWIPC },
    { "uts", CLONE_NEWUTS },
    { "cgroup", CLONE_NEWCGROUP },
    { "time", CLONE_NEWTIME },
};

static long call_unshare(const void *arg)
{
    const struct ns *ns = arg;
    return syscall(SYS_unshare, ns->flag);
}

static long reap(long pid)
{
    if (pid == 0)
        _exit(0);
    if (pid > 0)
        waitpid((pid_t)pid, NULL, __WALL);
    return pid;
}

static long call_clone(const void *arg)
{
    const struct ns *ns = arg;
    return reap(syscall(SYS_clone, ns->flag | SIGCHLD, NULL, NULL, NULL, 0));
}

static long call_clone3(const void *arg)
{
    const struct ns *ns = arg;
    struct clone_args args = { .flags = ns->flag, .exit_signal = SIGCHLD };
    return reap(syscall(SYS_clone3, &args, sizeof(args)));
}

/* A flag above the 32 bits that clone() uses must not hide one below. */
static long call_clone_high(const void *arg)
{
    const struct ns *ns = arg;
    return reap(syscall(SYS_clone, (1UL << 40) | ns->flag | SIGCHLD, NULL, NULL, NULL, 0));
}

static long call_setns(const struct ns *ns, const char *pid)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%s/ns/%s", pid, ns->name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? -1 : setns(fd, 0);
}

static long call_setns_self(const void *arg)
{
    return call_setns(arg, "self");
}

static char init_pid[16] = "1";

static long call_setns_init(const void *arg)
{
    return call_setns(arg, init_pid);
}

static long call_setns_pidfd(const void *arg)
{
    const struct ns *ns = arg;
    int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);
    return fd < 0 ? -1 : setns(fd, (int)ns->flag);
}

static const struct {
    const char *name;
    attempt_fn *fn;
} ways[] = {
    { "unshare", call_unshare },
    { "clone", call_clone },
    { "clone-high-bit", call_clone_high },
    { "clone3", call_clone3 },
    { "setns", call_setns_self },
    { "setns-init", call_setns_init },
    { "setns-pidfd", call_setns_pidfd },
};

static pid_t make_child(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            pause();
    }
    return pid;
}

/*
 * attack [own-child]: outside of a sandbox, instead of init, whose namespaces we must not
 * enter.
 */
static void attack(char **args)
{
    if (args[0] && strcmp(args[0], "own-child") == 0) {
        snprintf(init_pid, sizeof(init_pid), "%d", make_child());
    }
    for (size_t w = 0; w < ARRAY_LEN(ways); w++)
        for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
            char what[64];
            bool is_plain_clone =
                    strncmp(ways[w].name, "clone", 5) == 0 && ways[w].name[5] != '3';
            if (kinds[k].flag == CLONE_NEWTIME && is_plain_clone)
                continue; /* there the bit belongs to the exit signal */
            snprintf(what, sizeof(what), "%s-%s", ways[w].name, kinds[k].name);
            /* EINVAL, EUSERS: entering our own user namespace. */
            attempt_in_child(what, ways[w].fn, &kinds[k], REASONS(EINVAL),
                    REASONS(EPERM, ENOSYS, EACCES, ENOENT));
        }
}

static void *thread(void *arg)
{
    return arg;
}

static void control(char **args)
{
    static char name[] = "true";
    char *const true_argv[] = { name, NULL };
    static char *const no_env[] = { NULL };
    pthread_t t;
    int status = 0;
    pid_t pid;

    (void)args;
    pid = fork();
    works("fork", reap(pid) > 0);
    int r = pthread_create(&t, NULL, thread, NULL);
    works("thread", r == 0 && pthread_join(t, NULL) == 0);
    r = posix_spawn(&pid, "/bin/true", NULL, NULL, true_argv, no_env);
    works("spawn", r == 0 && waitpid(pid, &status, 0) == pid && status == 0);
    works("unshare-files", unshare(CLONE_FILES | CLONE_FS) == 0);
}

int main(int argc, char **argv)
{
    return attack_main(argc, argv,
            (struct attack_mode[]){ { "attack", attack }, { "control", control }, { 0 } });
}
