/* caps.c - capability sets by raw system calls: no library, no allocation. */
#include "runtime/serving/caps.h"
#include "base/err.h"
#include <errno.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int set_caps(uint32_t keep)
{
    struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct data[2] = {
        { .effective = keep, .permitted = keep },
    };

    return syscall(SYS_capset, &header, data) < 0 ? -errno : 0;
}

int caps_bound(struct carrel_error *err)
{
    for (unsigned long cap = 0; cap < 64; cap++) {
        if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) == 0)
            continue;
        if (errno == EINVAL && cap > CAP_LAST_CAP)
            break; /* the kernel has no more */
        return err_set_errno(err, -errno, "drop capability %lu", cap);
    }
    return 0;
}

int caps_keep(uint32_t keep, struct carrel_error *err)
{
    const unsigned long bits = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED |
                               SECBIT_NO_CAP_AMBIENT_RAISE |
                               SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED | SECBIT_KEEP_CAPS_LOCKED;

    if (prctl(PR_SET_SECUREBITS, bits, 0, 0, 0) < 0)
        return err_set_errno(err, -errno, "set securebits");
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
        return err_set_errno(err, -errno, "clear ambient capabilities");
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return err_set_errno(err, -errno, "set no_new_privs");
    int r = set_caps(keep);
    return r < 0 ? err_set_errno(err, r, "drop capabilities") : 0;
}

int caps_raise(struct carrel_error *err)
{
    struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct data[2];

    if (syscall(SYS_capget, &header, data) < 0)
        return err_set_errno(err, -errno, "read capabilities");
    for (int i = 0; i < 2; i++)
        data[i].effective = data[i].permitted;
    return syscall(SYS_capset, &header, data) < 0
                   ? err_set_errno(err, -errno, "raise capabilities")
                   : 0;
}

int caps_drop_all(void)
{
    return set_caps(0);
}
