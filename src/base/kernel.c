/* kernel.c - version numbers and the boot id. */
#include "base/kernel.h"
#include "base/err.h"
#include "base/fd.h"
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

bool kernel_release_is(const char *release, unsigned major, unsigned minor)
{
    unsigned got_major = 0;
    unsigned got_minor = 0;

    if (sscanf(release, "%u.%u", &got_major, &got_minor) != 2)
        return false;
    return got_major > major || (got_major == major && got_minor >= minor);
}

bool kernel_is(unsigned major, unsigned minor)
{
    struct utsname name;

    return uname(&name) == 0 && kernel_release_is(name.release, major, minor);
}

#define BOOT_ID "/proc/sys/kernel/random/boot_id"

int kernel_boot_id(char id[static KERNEL_BOOT_ID_MAX], struct carrel_error *err)
{
    ssize_t n = fd_read_file(AT_FDCWD, BOOT_ID, id, KERNEL_BOOT_ID_MAX);

    if (n < 0)
        return err_set_errno(err, (int)n, "read " BOOT_ID);
    id[strcspn(id, "\n")] = '\0';
    return 0;
}
