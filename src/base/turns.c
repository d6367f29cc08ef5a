/* turns.c - see turns.h. */
#include "base/turns.h"
#include <linux/sched.h>
#include <linux/sched/types.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SHORT_NS 100000U /* the least that the kernel gives */

/* 0: the kernel has no such thing, or this is no ordinary thread; nothing has changed. */
static uint64_t set(uint64_t slice_ns, uint64_t flags)
{
    struct sched_attr attr = { .size = sizeof(attr) };

    if (syscall(SYS_sched_getattr, 0, &attr, sizeof(attr), 0) < 0 ||
            attr.sched_policy != SCHED_NORMAL || attr.sched_runtime == 0)
        return 0;
    const uint64_t before = attr.sched_runtime;
    attr.sched_runtime = slice_ns;
    attr.sched_flags |= flags;
    return syscall(SYS_sched_setattr, 0, &attr, 0) < 0 ? 0 : before;
}

uint64_t turns_hurry(void)
{
    return set(SHORT_NS, 0);
}

void turns_restore(uint64_t before)
{
    if (before > 0)
        (void)set(before, 0);
}

bool turns_first(struct turns *before)
{
    struct sched_attr attr = { .size = sizeof(attr) };

    if (syscall(SYS_sched_getattr, 0, &attr, sizeof(attr), 0) < 0 ||
            attr.sched_policy != SCHED_NORMAL)
        return false;
    *before = (struct turns){ attr.sched_runtime, attr.sched_flags, attr.sched_nice };
    attr = (struct sched_attr){
        .size = sizeof(attr),
        .sched_policy = SCHED_FIFO,
        .sched_priority = 1,
        .sched_flags = SCHED_FLAG_RESET_ON_FORK,
    };
    return syscall(SYS_sched_setattr, 0, &attr, 0) == 0;
}

void turns_first_no_more(const struct turns *before)
{
    struct sched_attr attr = {
        .size = sizeof(attr),
        .sched_policy = SCHED_NORMAL,
        .sched_flags = before->flags,
        .sched_nice = before->nice,
        .sched_runtime = before->slice_ns,
    };

    if (syscall(SYS_sched_setattr, 0, &attr, 0) == 0)
        return;
    attr.sched_flags |= SCHED_FLAG_RESET_ON_FORK; /* only the privileged may take that back */
    (void)syscall(SYS_sched_setattr, 0, &attr, 0);
}

void turns_hurry_alone(void)
{
    (void)set(SHORT_NS, SCHED_FLAG_RESET_ON_FORK);
}
