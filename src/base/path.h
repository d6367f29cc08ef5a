/* path.h - questions about paths as text; nothing here touches a file. */
#pragma once
#include <stdbool.h>

/* One component: not empty, no slash, not "." or "..", at most NAME_MAX bytes. */
bool path_is_name(const char *text);

/* Absolute, no empty, "." or ".." components, no slash at the end ("/" itself is clean). */
bool path_is_clean(const char *path);

/* `path` is `top` or lies below it; both clean. */
bool path_is_below(const char *path, const char *top);

/*
 * Writes the absolute form of `path` as seen from `cwd` into `out` with "." and ".." and double
 * slashes taken out, by text alone. False when it does not fit.
 */
bool path_absolute(const char *cwd, const char *path, char *out, unsigned long size);
