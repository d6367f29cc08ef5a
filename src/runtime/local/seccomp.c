/* seccomp.c - loads the filter that seccomp_gen prepared when carrel was built. */
#include "runtime/local/seccomp.h"
#include "base/auto.h"
#include "base/err.h"
#include "seccomp_program.h"
#include <errno.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>
#include <unistd.h>

_Static_assert(
        ARRAY_LEN(seccomp_program) <= BPF_MAXINSNS, "the kernel takes no longer program");

const struct sock_filter *seccomp_program_code(void)
{
    return seccomp_program;
}

size_t seccomp_program_len(void)
{
    return ARRAY_LEN(seccomp_program);
}

int seccomp_install(struct carrel_error *err)
{
    /* The kernel copies the program; its interface only lacks the const. */
    union {
        const struct sock_filter *prepared;
        struct sock_filter *filter;
    } code = { .prepared = seccomp_program };
    const struct sock_fprog program = {
        .len = ARRAY_LEN(seccomp_program),
        .filter = code.filter,
    };

    /*
     * No flags. Not SECCOMP_FILTER_FLAG_SPEC_ALLOW: before Linux 5.16 it would take the
     * mitigations of Spectre off a program that nobody has vouched for; since then a filter
     * does not turn them on anyway, and the flag changes nothing.
     */
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0)
        return err_set_errno(err, -errno, "install the seccomp filter");
    return 0;
}
