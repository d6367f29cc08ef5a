/* lower.c - lookups in the layers of a pristine tree. They are ours and never change. */
#include "workspace/harvest/lower.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/limits.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/xattr.h>
#include <unistd.h>

void lower_close(struct lower *lower)
{
    for (unsigned i = 0; i < lower->n; i++)
        fd_close(lower->layers[i]);
    lower->n = 0;
}

int lower_open(struct lower *lower, const char *const *paths, struct carrel_error *err)
{
    lower->n = 0;
    for (size_t i = 0; paths && paths[i]; i++) {
        if (i == LOWER_MAX_LAYERS) {
            lower_close(lower);
            return err_set(err, -E2BIG, "more than %d layers in a workspace", LOWER_MAX_LAYERS);
        }
        int fd = open(paths[i], O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0) {
            int r = -errno;
            lower_close(lower);
            return err_set_errno(err, r, "open layer '%s'", paths[i]);
        }
        lower->layers[lower->n++] = fd;
    }
    return 0;
}

struct lower_entry lower_root(const struct lower *lower)
{
    uint64_t all = lower->n == 64 ? UINT64_MAX : (UINT64_C(1) << lower->n) - 1;

    return (struct lower_entry){ .kind = LOWER_DIR, .layers = all };
}

/* A committed link must not lead out of the layer, so the kernel enforces RESOLVE_BENEATH. */
static int open_in(int layer, const char *path, uint64_t flags)
{
    const struct open_how how = {
        .flags = flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };
    int fd = (int)syscall(SYS_openat2, layer, path, &how, sizeof(how));

    return fd < 0 ? -errno : fd;
}

static int fail(struct carrel_error *err, int r, const char *path)
{
    char shown[200];

    return err_set_errno(err, r, "look up '%s' in the base of the workspace",
            str_escape(path, strlen(path), shown, sizeof(shown)));
}

/* 1: the directory is opaque: it hides what other layers have below it. */
static int is_opaque(int layer, const char *path)
{
    AUTO(fd_close) int fd = open_in(layer, path, O_RDONLY | O_DIRECTORY);
    if (fd < 0)
        return fd;
    enum overlay_mark mark;
    int r = overlay_marks(fd, &mark);
    return r < 0 ? r : mark == OVERLAY_OPAQUE;
}

/*
 * Looks up `path` in layer `i`. Returns 1 if it exists. The parent is a directory in that
 * layer, not a link: only the last component is new.
 */
static int look(const struct lower *lower, const struct lower_entry *parent, unsigned i,
        const char *path, struct stat *st, struct carrel_error *err)
{
    if (!(parent->layers >> i & 1))
        return 0;
    if (fstatat(lower->layers[i], path, st, AT_SYMLINK_NOFOLLOW) == 0)
        return 1;
    return errno == ENOENT ? 0 : fail(err, -errno, path);
}

int lower_find(const struct lower *lower, const struct lower_entry *parent, const char *path,
        struct lower_entry *out, struct carrel_error *err)
{
    struct lower_entry found = { .kind = LOWER_NONE };

    for (unsigned i = 0; i < lower->n && parent->layers >> i != 0; i++) {
        struct stat st;
        int r = look(lower, parent, i, path, &st, err);
        if (r < 0)
            return r;
        if (r == 0)
            continue;
        if (!S_ISDIR(st.st_mode)) {
            if (found.kind == LOWER_NONE && !lower_is_whiteout(&st))
                found.kind = LOWER_FILE;
            break;
        }
        found.kind = LOWER_DIR;
        found.layers |= UINT64_C(1) << i;
        if (parent->layers >> i == 1)
            break; /* nothing below it that could be hidden */
        r = is_opaque(lower->layers[i], path);
        if (r < 0)
            return fail(err, r, path);
        if (r > 0)
            break;
    }
    *out = found;
    return 0;
}

int lower_has(const struct lower *lower, const char *path, struct carrel_error *err)
{
    struct lower_entry at = lower_root(lower);
    char part[PATH_MAX];

    if (strlen(path) >= sizeof(part))
        return fail(err, -ENAMETOOLONG, path);
    for (const char *end = path; *end; end += *end == '/') {
        if (at.kind != LOWER_DIR)
            return LOWER_NONE; /* a file or a link: nothing is below it */
        end = strchrnul(end, '/');
        (void)snprintf(part, sizeof(part), "%.*s", (int)(end - path), path);
        int r = lower_find(lower, &at, part, &at, err);
        if (r < 0)
            return r;
    }
    return (int)at.kind;
}

int lower_open_file(const struct lower *lower, const struct lower_entry *parent,
        const char *path, struct carrel_error *err)
{
    for (unsigned i = 0; i < lower->n && parent->layers >> i != 0; i++) {
        struct stat st;
        int r = look(lower, parent, i, path, &st, err);
        if (r < 0)
            return r;
        if (r == 0)
            continue;
        if (!S_ISREG(st.st_mode))
            return -ENOENT;
        int fd = open_in(lower->layers[i], path, O_RDONLY);
        return fd < 0 ? fail(err, fd, path) : fd;
    }
    return -ENOENT;
}

static const char *const prefixes[] = { "trusted.overlay.", "user.overlay." };

/* Marks about the origin and numbering of a copy; they do not affect the content. */
static const char *const harmless[] = { "impure", "nlink", "origin", "protattr", "upper",
    "uuid" };

/* "overlay.X" is how the mount stores an attribute that a run has set itself. */
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

/* The part after the prefix, or NULL if the attribute is not the overlay's. */
static const char *overlay_name(const char *attribute)
{
    for (size_t i = 0; i < ARRAY_LEN(prefixes); i++) {
        if (strncmp(attribute, prefixes[i], strlen(prefixes[i])) == 0)
            return attribute + strlen(prefixes[i]);
    }
    return NULL;
}

/* An overlay of ours writes only "y"; "x" would announce whiteouts as attributes. */
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
