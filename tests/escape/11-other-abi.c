/*
 * Makes denied calls by the numbers of another ABI: 32-bit through int 0x80, and x32 with bit
 * 30 set. A filter that compares numbers without checking the architecture lets them pass.
 */
#include "attack.h"
#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)

struct call {
    const char *what;
    long number;
    long a, b;
};

/* Harmless if they succeed: in a child that exits at once. */
static const struct call calls32[] = {
    { "i386-getpid", 20, 0, 0 },
    { "i386-unshare-uts", 310, CLONE_NEWUTS, 0 },
    { "i386-unshare-user", 310, CLONE_NEWUSER, 0 },
    { "i386-keyctl", 288, 0, -3 /* the session keyring's number */ },
    { "i386-bpf", 357, 99, 0 },
    { "i386-ptrace-traceme", 26, 0, 0 },
    { "i386-io_uring_setup", 425, 1, 0 },
};

static const struct call calls_x32[] = {
    { "x32-getpid", 0x40000000 | SYS_getpid, 0, 0 },
    { "x32-unshare-uts", 0x40000000 | SYS_unshare, CLONE_NEWUTS, 0 },
    { "x32-ptrace", 0x40000000 | 521, 0, 0 },
};

static long call32(const void *arg)
{
    const struct call *call = arg;
    long r = call->number;
    __asm__ volatile("int $0x80"
                     : "+a"(r)
                     : "b"(call->a), "c"(call->b), "d"(0L), "S"(0L), "D"(0L)
                     : "memory", "r8", "r9", "r10", "r11", "cc");
    r = (int32_t)r;
    if (r < 0 && r > -4096) {
        errno = (int)-r;
        return -1;
    }
    return r;
}

static long call_x32(const void *arg)
{
    const struct call *call = arg;
    return syscall(call->number, call->a, call->b, 0, 0, 0);
}

static void attack(char **args)
{
    (void)args;
    for (size_t i = 0; i < ARRAY_LEN(calls32); i++)
        attempt_in_child(calls32[i].what, call32, &calls32[i], REASONS(EINVAL, EFAULT, ENOKEY),
                BY_FILTER);
    for (size_t i = 0; i < ARRAY_LEN(calls_x32); i++)
        attempt_in_child(calls_x32[i].what, call_x32, &calls_x32[i], NULL, BY_FILTER);
}

#else

static void attack(char **args)
{
    (void)args;
    refused("other-abi", "this machine has one system call table");
}

#endif

static void control(char **args)
{
    (void)args;
    works("getpid", syscall(SYS_getpid) == getpid());
}

int main(int argc, char **argv)
{
    return attack_main(argc, argv,
            (struct attack_mode[]){ { "attack", attack }, { "control", control }, { 0 } });
}
