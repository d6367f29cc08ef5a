/* payload_fuzz.c - a block from an untrusted sender. */
#include "base/fd.h"
#include "base/payload.h"
#include "fuzz.h"
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct payload payload;
    AUTO(fd_close) int fd = memfd_create("fuzz", MFD_CLOEXEC);

    if (fd < 0 || fd_write_all(fd, data, size) < 0 || payload_map(fd, &payload) < 0)
        return 0;
    /* Every string ends inside the block, or a sanitizer says so here. */
    size_t total = strlen(payload.text);
    for (char **at = payload.argv; *at; at++)
        total += strlen(*at);
    for (char **at = payload.env; *at; at++)
        total += strlen(*at);
    if (total > size)
        __builtin_trap();
    payload_unmap(&payload);
    return 0;
}
