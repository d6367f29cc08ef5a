/* signals.c - by the system call: the C library hides two signals of its own. */
#include "base/signals.h"
#include <sys/syscall.h>
#include <unistd.h>

#define LAST_SIGNAL 64
#define MASK_BYTES 8 /* of the kernel's signal set */

void signals_reset(void)
{
    /* The kernel's struct, longest on any architecture; all zero is SIG_DFL without flags. */
    const unsigned long plain[8] = { 0 };

    for (int sig = 1; sig <= LAST_SIGNAL; sig++)
        (void)syscall(
                SYS_rt_sigaction, sig, plain, NULL, MASK_BYTES); /* KILL and STOP refuse */
}

void signals_block(sigset_t *before)
{
    sigset_t all;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, before); /* cannot fail with these arguments */
}

void signals_unblock(const sigset_t *before)
{
    (void)pthread_sigmask(SIG_SETMASK, before, NULL);
}
