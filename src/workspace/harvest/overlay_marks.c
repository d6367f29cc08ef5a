/* overlay_marks.c - an allow-list: a mark from a newer kernel must not be misread as none. */
#include "workspace/harvest/overlay_marks.h"
#include "base/auto.h"
#include <errno.h>
#include <linux/limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/types.h>
#include <sys/xattr.h>

static const char *const prefixes[] = { "trusted.overlay.", "user.overlay." };

/* They say where a copy came from and how to number it; the content is what it is. */
static const char *const harmless[] = { "impure", "nlink", "origin", "protattr", "upper",
    "uuid" };

/* "overlay.X" is how the mount stores an attribute that a run itself has set. */
static bool is_harmless(const char *name)
{
    if (strncmp(name, "overlay.", strlen("overlay.")) == 0)
        return true;
    for (size_t i = 0; i < ARRAY_LEN(harmless); i++) {
        if (strcmp(name, harmless[i]) == 0)
            return true;
    }
    return false;
}

/* The part behind the prefix, or NULL when it is somebody else's attribute. */
static const char *overlay_name(const char *attribute)
{
    for (size_t i = 0; i < ARRAY_LEN(prefixes); i++) {
        if (strncmp(attribute, prefixes[i], strlen(prefixes[i])) == 0)
            return attribute + strlen(prefixes[i]);
    }
    return NULL;
}

/* Only "y" is what an overlay of ours writes; "x" would announce whiteouts as attributes. */
static int read_opaque(int fd, const char *attribute, enum overlay_mark *mark)
{
    char value[2];
    ssize_t n = fgetxattr(fd, attribute, value, sizeof(value));

    if (n < 0 && errno != ERANGE)
        return -errno;
    if (n != 1 || value[0] != 'y')
        return -EUCLEAN;
    *mark = OVERLAY_OPAQUE;
    return 0;
}

int overlay_marks(int fd, enum overlay_mark *mark)
{
    char few[512];
    AUTO(free) char *many = NULL;
    char *list = few;

    *mark = OVERLAY_PLAIN;
    ssize_t len = flistxattr(fd, few, sizeof(few));
    if (len < 0 && errno == ERANGE) {
        many = malloc(XATTR_LIST_MAX);
        if (!many)
            return -ENOMEM;
        list = many;
        len = flistxattr(fd, many, XATTR_LIST_MAX);
    }
    if (len < 0)
        return errno == ENOTSUP ? 0 : -errno; /* no attributes, no marks */
    for (const char *at = list; at < list + len; at += strlen(at) + 1) {
        const char *name = overlay_name(at);
        if (!name || is_harmless(name))
            continue;
        if (strcmp(name, "opaque") != 0)
            return -EUCLEAN;
        int r = read_opaque(fd, at, mark);
        if (r < 0)
            return r;
    }
    return 0;
}
