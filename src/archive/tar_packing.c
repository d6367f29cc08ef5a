/* tar_packing.c - tells how a tar is compressed. */
#include "archive/tar_reader.h"
#include <string.h>

static const struct {
    enum tar_packing packing;
    const char *name;
    const char *magic;
    size_t len;
} packings[] = {
    { TAR_PLAIN, "plain", "", 0 },
    { TAR_GZIP, "gzip", "\x1f\x8b", 2 },
    { TAR_ZSTD, "zstd", "\x28\xb5\x2f\xfd", 4 },
    { TAR_XZ, "xz",
            "\xfd"
            "7zXZ\0",
            6 },
};

enum tar_packing tar_packing_of(const void *head, size_t len)
{
    for (size_t i = 1; i < ARRAY_LEN(packings); i++)
        if (len >= packings[i].len && memcmp(head, packings[i].magic, packings[i].len) == 0)
            return packings[i].packing;
    return TAR_PLAIN;
}

const char *tar_packing_name(enum tar_packing packing)
{
    for (size_t i = 0; i < ARRAY_LEN(packings); i++)
        if (packings[i].packing == packing)
            return packings[i].name;
    return "any";
}
