/* path.c - paths as text. */
#include "base/path.h"
#include <limits.h>
#include <string.h>

static bool is_dots(const char *text, size_t len)
{
    return (len == 1 && text[0] == '.') || (len == 2 && text[0] == '.' && text[1] == '.');
}

bool path_is_name(const char *text)
{
    size_t len = strlen(text);

    return len > 0 && len <= NAME_MAX && !strchr(text, '/') && !is_dots(text, len);
}

bool path_is_clean(const char *path)
{
    if (path[0] != '/' || strlen(path) >= PATH_MAX)
        return false;
    if (!path[1])
        return true;
    while (*path) {
        size_t len = strcspn(++path, "/");
        if (len == 0 || len > NAME_MAX || is_dots(path, len))
            return false;
        path += len;
    }
    return true;
}

bool path_is_below(const char *path, const char *top)
{
    size_t len = strlen(top);

    if (len == 1)
        return true; /* everything is below "/" */
    return strncmp(path, top, len) == 0 && (path[len] == '/' || !path[len]);
}

/* Appends the components of `path` to out[0..*len). */
static bool append(const char *path, char *out, size_t *len, size_t size)
{
    while (*path) {
        path += strspn(path, "/");
        size_t n = strcspn(path, "/");
        if (n == 2 && is_dots(path, n)) {
            while (*len > 0 && out[--*len] != '/')
                ;
        } else if (n > 0 && !is_dots(path, n)) {
            if (*len + 1 + n + 1 > size)
                return false;
            out[(*len)++] = '/';
            memcpy(out + *len, path, n);
            *len += n;
        }
        path += n;
    }
    return true;
}

bool path_absolute(const char *cwd, const char *path, char *out, unsigned long size)
{
    size_t len = 0;

    if (path[0] != '/' && !append(cwd, out, &len, size))
        return false;
    if (!append(path, out, &len, size))
        return false;
    if (len == 0)
        out[len++] = '/';
    out[len] = '\0';
    return true;
}
