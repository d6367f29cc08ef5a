/* tar_format.h - the blocks of a plain tar, as our writer writes and our reader takes them. */
#pragma once
#include "files/tar.h"

#define TAR_BLOCK 512
#define TAR_SIZE_MAX 077777777777ULL /* that a header can hold */
#define TAR_PAX_MAX (4 * TAR_PATH_MAX)
#define TAR_TYPE_PAX 'x'
#define TAR_TYPE_FAILED 'E' /* of those that POSIX leaves to implementations */
#define TAR_MAGIC                                                                              \
    "ustar\0"                                                                                  \
    "00"

/* Numbers are octal digits up to a NUL; the sum has a space after it. */
struct tar_header {
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8], type, target[100];
    char magic[8], uname[32], gname[32], major[8], minor[8], prefix[155], pad[12];
};
_Static_assert(sizeof(struct tar_header) == TAR_BLOCK, "a header is a block");
