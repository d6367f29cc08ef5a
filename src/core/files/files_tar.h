/*
 * files_tar.h - files of a sandbox as a tar, both ways. In the program only: see archive/tar.h.
 */
#pragma once
#include "core/files/files.h"

/*
 * Writes what is in a directory, or one file, to `out` as a plain tar with names below ".".
 * Only files, directories and links that stay within it; no owners, no set-uid bits. -EBUSY: a
 * file changed while it was read; what was written then is no whole archive, nor after any
 * other failure.
 */
int files_export(struct file_access *access, const char *path, int out,
        const struct files_limits *limits, struct files_count *count, struct carrel_error *err);

/*
 * Makes what a tar from `in`, plain or packed, has in it, below a directory. Whoever made the
 * archive chose what is in it: it is parsed by a process without rights, and everything is made
 * by the sandbox, under its user's rights, below that directory, through no link. Devices,
 * FIFOs and sockets are left out and counted.
 */
int files_import(struct file_access *access, const char *path, int in,
        const struct files_limits *limits, struct files_count *count, struct carrel_error *err);
