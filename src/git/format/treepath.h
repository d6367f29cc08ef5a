/* treepath.h - which paths may stand in a git tree, and how git wants them written. */
#pragma once

struct buf;

/*
 * Why `path` (relative, bytes of any kind) must not enter a tree, or NULL. Refused are empty,
 * "." and ".." components, names longer than a file system takes, and every name that git or
 * the file system of some other machine takes for ".git": any case, "git~1", followed by dots,
 * spaces or a stream (":..."), with characters in it that HFS+ ignores, or behind a backslash.
 */
const char *treepath_why_not(const char *path);

/* Adds `text` in double quotes, escaped as git's C-style unquoting reads it. */
void treepath_quote(struct buf *out, const char *text);
