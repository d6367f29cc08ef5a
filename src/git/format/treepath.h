/* treepath.h - which paths are valid in a git tree, and how git quotes them. */
#pragma once

struct buf;

/*
 * Why `path` (relative, any bytes) must not be in a tree, or NULL. Refused are empty, "." and
 * ".." components, names longer than a file system allows, and every name that git or a file
 * system on another machine treats as ".git": any case, "git~1", followed by dots, spaces or a
 * stream (":..."), with characters that HFS+ ignores, or after a backslash.
 */
const char *treepath_why_not(const char *path);

/* Adds `text` in double quotes, escaped as git's C-style unquoting reads it. */
void treepath_quote(struct buf *out, const char *text);
