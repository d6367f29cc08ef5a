/* kernel.c - version numbers and the boot id. */
#include "base/kernel.h"
#include <stdio.h>
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
