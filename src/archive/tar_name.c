/* tar_name.c - checks names from archives. */
#include "archive/tar.h"
#include "base/err.h"
#include "base/str.h"
#include <errno.h>
#include <limits.h>
#include <string.h>

static int refuse(struct carrel_error *err, int code, const char *path, const char *why)
{
    char shown[200];

    return err_set(err, code, "the name '%s' %s",
            str_escape(path, strlen(path), shown, sizeof(shown)), why);
}

int tar_clean_path(const char *path, unsigned max_depth, char out[static TAR_PATH_MAX + 1],
        struct carrel_error *err)
{
    const char *at = path;
    size_t len = 0;
    unsigned depth = 0;

    if (*path == '\0')
        return err_set(err, -EINVAL, "an entry has no name");
    if (*path == '/')
        return refuse(err, -EINVAL, path, "is absolute");
    while (*at) {
        size_t part = strcspn(at, "/");
        if (part == 2 && at[0] == '.' && at[1] == '.')
            return refuse(err, -EINVAL, path, "has a part '..'");
        if (part > NAME_MAX)
            return refuse(err, -ENAMETOOLONG, path, "has a part that is too long");
        if (part > 0 && !(part == 1 && at[0] == '.')) {
            if (len + part + 1 > TAR_PATH_MAX)
                return refuse(err, -ENAMETOOLONG, path, "is too long");
            if (++depth > max_depth)
                return refuse(err, -ENAMETOOLONG, path, "is too deep");
            if (len > 0)
                out[len++] = '/';
            memcpy(out + len, at, part);
            len += part;
        }
        at += part;
        at += *at == '/';
    }
    if (len == 0)
        out[len++] = '.';
    out[len] = '\0';
    return 0;
}

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
