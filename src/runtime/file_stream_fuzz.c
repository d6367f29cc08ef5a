/* file_stream_fuzz.c - whatever a far side sends as a list: each name is one component. */
#include "base/fd.h"
#include "base/path.h"
#include "fuzz.h"
#include "runtime/files.h"
#include <carrel/error.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(fd_close) int fd = memfd_create("list", MFD_CLOEXEC);
    struct carrel_error err = { 0 };
    struct file_entry entry;
    int r;

    if (fd < 0 || fd_write_all(fd, data, size) < 0 || lseek(fd, 0, SEEK_SET) < 0)
        return 0;
    while ((r = file_list_next(fd, &entry, &err)) == 1)
        if (!path_is_name(entry.name))
            abort();
    if (r < 0 && err.code != r)
        abort();
    return 0;
}
