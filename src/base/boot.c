/* boot.c - the kernel's own id of this boot. */
#include "base/boot.h"
#include "base/err.h"
#include "base/fd.h"
#include <fcntl.h>
#include <string.h>

#define BOOT_ID "/proc/sys/kernel/random/boot_id"

int boot_id_read(char id[static BOOT_ID_MAX], struct carrel_error *err)
{
    ssize_t n = fd_read_file(AT_FDCWD, BOOT_ID, id, BOOT_ID_MAX);

    if (n < 0)
        return err_set_errno(err, (int)n, "read " BOOT_ID);
    id[strcspn(id, "\n")] = '\0';
    return 0;
}
