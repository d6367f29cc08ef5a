/*
 * mounts.h - detached mounts: created, restricted, and only then attached.
 *
 * Used in the child: allocates nothing. Functions return a descriptor or 0, and on failure -1
 * with errno set, except mounts_make(), which sets err.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>

struct carrel_error;

/* A copy of the mount tree at `path` below `dir`; path may be "": the directory itself. */
int mounts_clone(int dir, const char *path);

/*
 * Restricts it and all below (MOUNT_ATTR_*), and makes it private, so that nothing propagates.
 */
int mounts_restrict(int mount, uint64_t attributes);

/* Attaches it at `path` below `dir`; path may be "": on the directory or file itself. */
int mounts_attach(int mount, int dir, const char *path);

struct mount_option {
    const char *key;
    const char *value; /* NULL: a flag */
};

/* A new file system of `type`, detached. A negative errno on failure. */
int mounts_make(const char *type, const struct mount_option *options, size_t n, unsigned attr,
        struct carrel_error *err);
