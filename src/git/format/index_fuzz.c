/* index_fuzz.c - an untrusted index. */
#include "base/fd.h"
#include "base/sha1.h"
#include "fuzz.h"
#include "git/format/index.h"
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(fd_close) int fd = memfd_create("fuzz", MFD_CLOEXEC);
    AUTO(index_free) struct index *index = NULL;
    unsigned char digest[SHA1_BYTES];
    struct sha1 sha;

    /* Corrects the checksum: else every mutated input would be refused early. */
    sha1_init(&sha);
    sha1_add(&sha, data, size);
    sha1_finish(&sha, digest);
    if (fd < 0 || fd_write_all(fd, data, size) < 0 ||
            fd_write_all(fd, digest, sizeof(digest)) < 0 ||
            index_read(fd, false, &index, NULL) < 0)
        return 0;
    index_set_owner(index, 1, 2);
    for (size_t i = 0; i < index->n; i++) {
        const struct index_entry *entry = &index->entries[i];
        if (strlen(entry->path) != entry->path_len || index_find(index, entry->path) != entry)
            __builtin_trap();
        (void)index_has_dir(index, entry->path, entry->path_len);
    }
    return 0;
}
