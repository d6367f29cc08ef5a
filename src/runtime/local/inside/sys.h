/* sys.h - system calls for which the C library has no function. */
#pragma once
#include <linux/openat2.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

static inline int sys_clone3(struct clone_args *args)
{
    return (int)syscall(SYS_clone3, args, sizeof(*args));
}

static inline int sys_openat2(int dir, const char *path, const struct open_how *how)
{
    return (int)syscall(SYS_openat2, dir, path, how, sizeof(*how));
}

static inline int sys_pivot_root(const char *new_root, const char *put_old)
{
    return (int)syscall(SYS_pivot_root, new_root, put_old);
}

static inline int sys_pidfd_send_signal(int pidfd, int sig)
{
    return (int)syscall(SYS_pidfd_send_signal, pidfd, sig, NULL, 0);
}
