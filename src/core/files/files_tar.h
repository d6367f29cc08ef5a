/* files_tar.h - files of a sandbox as a tar, in both directions. */
#pragma once
#include "core/files/files.h"

/*
 * Writes the content of a directory, or one file, to `out` as a plain tar with names below ".".
 * Only files, directories and links that stay within it; no owners, no set-uid bits. -EBUSY: a
 * file changed while it was read; after this or any other failure the archive is incomplete.
 */
int files_export(struct file_access *access, const char *path, int out,
        const struct files_limits *limits, struct files_count *count, struct carrel_error *err);

/*
 * Unpacks a tar from `in`, plain or compressed, below a directory. The archive is untrusted: a
 * process without rights parses it, and the sandbox creates everything, with the rights of its
 * user, below that directory, following no link. Devices, FIFOs and sockets are skipped and
 * counted.
 */
int files_import(struct file_access *access, const char *path, int in,
        const struct files_limits *limits, struct files_count *count, struct carrel_error *err);
