/* Reads and takes over another process: init, its siblings, a process of the host. */
#include "attack.h"
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static const int *const by_kernel = REASONS(EPERM, EACCES, ESRCH, ENOENT, ENOSYS, EBADF);
static char secret[] = "only in this process";

struct target {
    pid_t pid;
    uintptr_t address; /* of something readable in it */
    int fd;            /* open in it */
};

static long seize(const void *arg)
{
    const struct target *t = arg;
    return ptrace(PTRACE_SEIZE, t->pid, NULL, NULL);
}

static long attach(const void *arg)
{
    const struct target *t = arg;
    long r = ptrace(PTRACE_ATTACH, t->pid, NULL, NULL);
    if (r == 0)
        waitpid(t->pid, NULL, __WALL);
    return r; /* our exit detaches it again */
}

static long copy(const struct target *t, bool is_write)
{
    char byte[1];
    struct iovec here = { byte, 1 };
    struct iovec there = { (void *)t->address, 1 };
    ssize_t n = process_vm_readv(t->pid, &here, 1, &there, 1, 0);
    if (n == 1 && is_write)
        n = process_vm_writev(t->pid, &here, 1, &there, 1, 0);
    return n;
}

static long read_memory(const void *arg)
{
    return copy(arg, false);
}

static long write_memory(const void *arg)
{
    return copy(arg, true);
}

static long open_proc(const struct target *t, const char *name, int flags)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/%s", t->pid, name);
    return open(path, flags | O_CLOEXEC);
}

static long open_memory(const void *arg)
{
    return open_proc(arg, "mem", O_RDWR);
}

static long enter_root(const void *arg)
{
    return open_proc(arg, "root", O_RDONLY | O_DIRECTORY);
}

static long take_descriptor(const void *arg)
{
    const struct target *t = arg;
    int pidfd = (int)syscall(SYS_pidfd_open, t->pid, 0);
    if (pidfd < 0)
        return -1;
    return syscall(SYS_pidfd_getfd, pidfd, t->fd, 0);
}

static long compare(const void *arg)
{
    const struct target *t = arg;
    return syscall(SYS_kcmp, t->pid, getpid(), KCMP_VM, 0, 0);
}

static const struct {
    const char *what;
    attempt_fn *fn;
} tries[] = {
    { "ptrace-seize", seize },
    { "ptrace-attach", attach },
    { "process_vm_readv", read_memory },
    { "process_vm_writev", write_memory },
    { "proc-mem", open_memory },
    { "proc-root", enter_root },
    { "pidfd_getfd", take_descriptor },
    { "kcmp", compare },
};

static void attack_one(const char *label, const struct target *target)
{
    for (size_t i = 0; i < ARRAY_LEN(tries); i++) {
        char what[64];
        snprintf(what, sizeof(what), "%s%s", tries[i].what, label);
        /* EIO, EFAULT: the access was granted, only the guessed address was wrong. */
        attempt_in_child(what, tries[i].fn, target, REASONS(EIO, EFAULT), by_kernel);
    }
}

/* attack PID ADDRESS FD: a process of the host; then everything else that can be seen. */
static void attack(char **args)
{
    struct target target = { (pid_t)number(args[0]), number(args[1]), (int)number(args[2]) };

    attack_one("", &target);
    if (args[3]) /* bare: only the victim; we must not touch other processes */
        return;
    DIR *dir = opendir("/proc");
    for (struct dirent *e; dir && (e = readdir(dir));) {
        char label[32];
        target.pid = isdigit((unsigned char)e->d_name[0]) ? atoi(e->d_name) : 0;
        target.address = (uintptr_t)secret; /* any mapped address */
        if (target.pid == 0 || target.pid == getpid())
            continue;
        snprintf(label, sizeof(label), "-pid%d", target.pid);
        attack_one(label, &target);
    }
    if (dir)
        closedir(dir);
}

static void control(char **args)
{
    char copy_of[sizeof(secret)] = "";
    (void)args;
    int fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    works("own-memory", pread(fd, copy_of, sizeof(copy_of), (off_t)(uintptr_t)secret) > 0);
    pid_t pid = fork();
    if (pid == 0) {
        pause();
        _exit(0);
    }
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    works("pidfd-of-child", pidfd >= 0);
    works("signal-child", syscall(SYS_pidfd_send_signal, pidfd, 9, NULL, 0) == 0);
    works("wait-for-child", waitpid(pid, NULL, 0) == pid);
}

static void victim(char **args)
{
    (void)args;
    (void)prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY); /* where Yama would narrow it */
    ready("%d %lu %d", getpid(), (unsigned long)(uintptr_t)secret, STDOUT_FILENO);
    for (;;)
        pause();
}

int main(int argc, char **argv)
{
    return attack_main(argc, argv,
            (struct attack_mode[]){ { "attack", attack }, { "control", control },
                    { "victim", victim }, { 0 } });
}
