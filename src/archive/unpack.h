/*
 * unpack.h - a tar becomes a tree of files: one layer of an overlay.
 *
 * The tree belongs to whoever unpacks, all of it. Directories can be read, entered and written
 * by their owner and files can be read by theirs, whatever the archive says; other permissions
 * are the archive's. Set-uid and set-gid bits, owners and attributes are not taken over.
 * Devices, FIFOs and sockets are left out and counted. ".wh.NAME" hides NAME of the layers
 * below and
 * ".wh..wh..opq" all that they have in its directory, in the form that an overlay mounted with
 * `userxattr` knows. No link is followed, whoever made it.
 */
#pragma once
#include "archive/tar.h"

struct carrel_error;

struct unpacked {
    uint64_t entries; /* made */
    uint64_t bytes;   /* of files, holes included */
    uint64_t hidden;  /* names of layers below that are hidden, and opaque directories */
    uint64_t skipped; /* devices, FIFOs, sockets */
};

/* Reads a plain tar from `fd` to its end into the empty directory `dir`. In this process. */
int unpack_tree(int fd, int dir, const struct tar_limits *limits, struct unpacked *out,
        struct carrel_error *err);

/*
 * The same, with a tar of any packing, by two processes of their own that can do nothing else:
 * one unpacks the bytes, the other makes the files. What passes between them is hashed here, so
 * `diff_id` (hex) is that of the tar whatever those two are made to do. A pipe is fine; one
 * that is known to hold a plain tar is TAR_PLAIN.
 */
int unpack_apart(int fd, enum tar_packing packing, int dir, const struct tar_limits *limits,
        struct unpacked *out, char diff_id[static 65], struct carrel_error *err);
