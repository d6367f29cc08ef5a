/* calls.c - tables. */
#include "calls.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#define LEN(array) (sizeof(array) / sizeof((array)[0]))
#define CALL(name)                                                                             \
    {                                                                                          \
        SYS_##name, #name                                                                      \
    }

/* clang-format off */
static const struct {
    long number;
    const char *name;
} names[] = {
    CALL(bind), CALL(brk), CALL(capget), CALL(capset), CALL(chdir), CALL(clock_gettime),
    CALL(clone), CALL(clone3), CALL(close), CALL(close_range), CALL(connect), CALL(dup),
    CALL(dup3), CALL(execve), CALL(execveat), CALL(exit), CALL(exit_group), CALL(faccessat),
    CALL(faccessat2), CALL(fchdir), CALL(fchmod), CALL(fchmodat), CALL(fchown),
    CALL(fchownat), CALL(fcntl), CALL(flock), CALL(fsconfig), CALL(fsmount), CALL(fsopen),
    CALL(fstat), CALL(fstatfs), CALL(ftruncate), CALL(getdents64), CALL(getegid),
    CALL(geteuid), CALL(getgid), CALL(getpid), CALL(getppid), CALL(getrandom),
    CALL(getresuid), CALL(gettid), CALL(getuid), CALL(ioctl), CALL(kill),
    CALL(landlock_add_rule), CALL(landlock_create_ruleset), CALL(landlock_restrict_self),
    CALL(lseek), CALL(madvise), CALL(memfd_create), CALL(mkdirat), CALL(mknodat), CALL(mmap),
    CALL(mount), CALL(mount_setattr), CALL(move_mount), CALL(mprotect), CALL(mremap),
    CALL(munmap), CALL(newfstatat), CALL(open_tree), CALL(openat), CALL(openat2),
    CALL(personality), CALL(pidfd_open), CALL(pidfd_send_signal), CALL(pipe2),
    CALL(pivot_root), CALL(ppoll), CALL(prctl), CALL(pread64), CALL(prlimit64),
    CALL(pwrite64), CALL(read), CALL(readlinkat), CALL(recvfrom), CALL(recvmsg),
    CALL(rt_sigaction), CALL(rt_sigprocmask), CALL(rt_sigreturn), CALL(sched_getaffinity),
    CALL(sched_yield), CALL(seccomp), CALL(sendmsg), CALL(sendto), CALL(set_robust_list),
    CALL(set_tid_address), CALL(setfsgid), CALL(setfsuid), CALL(setgid), CALL(setgroups),
    CALL(sethostname), CALL(setns), CALL(setpriority), CALL(setresgid), CALL(setresuid),
    CALL(setrlimit), CALL(setsid), CALL(signalfd4), CALL(socket), CALL(socketpair),
    CALL(statfs), CALL(statx), CALL(symlinkat), CALL(umask), CALL(umount2), CALL(uname),
    CALL(unlinkat), CALL(unshare), CALL(wait4), CALL(waitid), CALL(write), CALL(writev),
#ifdef SYS_rseq
    CALL(rseq),
#endif
#ifdef SYS_access /* calls that newer architectures lack */
    CALL(access), CALL(alarm), CALL(arch_prctl), CALL(dup2), CALL(fork), CALL(getrlimit),
    CALL(lstat), CALL(mkdir), CALL(open), CALL(pause), CALL(pipe), CALL(poll), CALL(readlink),
    CALL(rmdir), CALL(stat), CALL(time), CALL(unlink), CALL(vfork),
#endif
};
/* clang-format on */

static const char *const must_refuse[] = {
    "capset",
    "clone",
    "clone3",
    "close_range",
    "dup3",
    "fsconfig",
    "fsmount",
    "fsopen",
    "landlock_add_rule",
    "landlock_create_ruleset",
    "landlock_restrict_self",
    "mkdirat",
    "mount",
    "mount_setattr",
    "move_mount",
    "open_tree",
    "pivot_root",
    "prlimit64",
    "prctl",
    "seccomp",
    "setgroups",
    "sethostname",
    "setresgid",
    "setresuid",
    "setrlimit",
    "setsid",
    "socket",
    "symlinkat",
    "umount2",
    "unshare",
    "fchownat",
    "openat2",
};

static const struct {
    const char *name;
    int number;
} errors[] = {
    { "EPERM", EPERM },
    { "ENOENT", ENOENT },
    { "EINTR", EINTR },
    { "EIO", EIO },
    { "EAGAIN", EAGAIN },
    { "ENOMEM", ENOMEM },
    { "EACCES", EACCES },
    { "EBUSY", EBUSY },
    { "EEXIST", EEXIST },
    { "EINVAL", EINVAL },
    { "EMFILE", EMFILE },
    { "ENOSPC", ENOSPC },
    { "EROFS", EROFS },
    { "ENOSYS", ENOSYS },
    { "EOPNOTSUPP", EOPNOTSUPP },
    { "EUSERS", EUSERS },
};

const char *call_name(long number)
{
    static char other[32];

    for (size_t i = 0; i < LEN(names); i++)
        if (names[i].number == number)
            return names[i].name;
    (void)snprintf(other, sizeof(other), "call_%ld", number);
    return other;
}

static bool is_one_of(const char *name, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(name, list[i]) == 0)
            return true;
    return false;
}

bool call_cannot_fail(long number)
{
    static const char *const list[] = { "brk", "clock_gettime",
        "close", /* has closed, whatever it returns */
        "exit", "exit_group", "getegid", "geteuid", "getgid", "getpid", "getppid", "gettid",
        "getuid", "munmap", "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "setfsgid",
        "setfsuid", "umask" };

    return is_one_of(call_name(number), list, LEN(list));
}

bool call_must_refuse(long number, int error)
{
    if (number == SYS_openat2 && error == EAGAIN)
        return false; /* it asks for another try, see openat2(2) */
    return is_one_of(call_name(number), must_refuse, LEN(must_refuse));
}

int error_number(const char *name, size_t len)
{
    for (size_t i = 0; i < LEN(errors); i++)
        if (strlen(errors[i].name) == len && strncmp(errors[i].name, name, len) == 0)
            return errors[i].number;
    return 0;
}
