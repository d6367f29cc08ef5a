/* path.h - predicates on paths as text; no file is accessed. */
#pragma once
#include <stdbool.h>

/* One component: not empty, no slash, not "." or "..", at most NAME_MAX bytes. */
bool path_is_name(const char *text);

/* Absolute, no empty, "." or ".." components, no slash at the end ("/" itself is clean). */
bool path_is_clean(const char *path);

/* `path` is `top` or below it; both clean. */
bool path_is_below(const char *path, const char *top);

/*
 * Writes the absolute form of `path`, relative to `cwd`, into `out`. Removes "." and ".." and
 * double slashes textually, without following links. False if it does not fit.
 */
bool path_absolute(const char *cwd, const char *path, char *out, unsigned long size);
