/* tar_name.c - checks names from archives. */
#include "base/err.h"
#include "base/str.h"
#include "files/tar.h"
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
