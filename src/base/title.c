/* title.c - the words of the command line, where the kernel reads them. */
#include "base/title.h"
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>

#define ARGUMENTS_MAX (8U << 20) /* exec(2) takes no more */

/*
 * They lie between the first argument and the name of the executable, where exec put all of it;
 * a caller that moved either of them keeps what it moved them for.
 */
int title_set(const char *name)
{
    char *first = program_invocation_name;
    uintptr_t end = getauxval(AT_EXECFN);
    size_t len = strlen(name) + 1;

    if (prctl(PR_SET_NAME, name, 0, 0, 0) < 0)
        return -errno;
    if (end <= (uintptr_t)first || end - (uintptr_t)first > ARGUMENTS_MAX)
        return 0;
    explicit_bzero(first, end - (uintptr_t)first);
    if (end - (uintptr_t)first >= len)
        memcpy(first, name, len);
    return 0;
}
