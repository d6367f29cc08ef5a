/* tar_plain_fuzz.c - whatever comes as a tar: each name can be used below a directory. */
#include "base/fd.h"
#include "files/tar_plain.h"
#include "fuzz.h"
#include <carrel/error.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void check(const char *path)
{
    char clean[TAR_PATH_MAX + 1];

    if (tar_clean_path(path, 8, clean, NULL) < 0 || strcmp(clean, path) != 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(fd_close) int fd = memfd_create("tar", MFD_CLOEXEC);
    struct carrel_error err = { 0 };
    struct tar_entry entry;
    struct tar_plain tar;
    char chunk[600];
    ssize_t n = 0;
    int r;

    if (fd < 0 || fd_write_all(fd, data, size) < 0 || lseek(fd, 0, SEEK_SET) < 0)
        return 0;
    tar_plain_init(&tar, fd, 8);
    while ((r = tar_plain_next(&tar, &entry, &err)) == 1) {
        uint64_t total = 0;
        check(entry.path);
        if (entry.kind == TAR_HARDLINK)
            check(entry.target);
        if (entry.kind == TAR_SYMLINK && !entry.target[0])
            abort();
        if (entry.mode & ~(mode_t)01777)
            abort();
        while (entry.kind == TAR_FILE && (n = tar_plain_read(&tar, chunk, 600, &err)) > 0)
            total += (uint64_t)n;
        if (n == 0 && entry.kind == TAR_FILE && total != entry.bytes)
            abort();
    }
    if (r < 0 && err.code != r)
        abort();
    return 0;
}
