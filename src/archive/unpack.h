/*
 * unpack.h - unpacks a tar into a tree of files: one layer of an overlay.
 *
 * The whole tree belongs to the calling user. Its owner can read, enter and write directories
 * and read files, whatever the archive says; other permissions are the archive's. Set-uid and
 * set-gid bits, owners and attributes are not applied. Devices, FIFOs and sockets are skipped
 * and counted. ".wh.NAME" hides NAME of the layers below and ".wh..wh..opq" all that they have
 * in its directory, in the form of an overlay mounted with `userxattr`. No link is followed.
 */
#pragma once
#include "archive/tar_reader.h"

struct carrel_error;

struct unpacked {
    uint64_t entries; /* made */
    uint64_t bytes;   /* of files, holes included */
    uint64_t hidden;  /* names of layers below that are hidden, and opaque directories */
    uint64_t skipped; /* devices, FIFOs, sockets */
};

/* Unpacks a plain tar from `fd` into the empty directory `dir`. In this process. */
int unpack_tree(int fd, int dir, const struct tar_limits *limits, struct unpacked *out,
        struct carrel_error *err);

/*
 * The same for a tar of any packing, in two confined processes: one decompresses, the other
 * creates the files. What passes between them is hashed here, so `diff_id` (hex) is that of the
 * tar even if those two are taken over. A pipe is fine; if it is known to be a plain tar, pass
 * TAR_PLAIN.
 */
int unpack_apart(int fd, enum tar_packing packing, int dir, const struct tar_limits *limits,
        struct unpacked *out, char diff_id[static 65], struct carrel_error *err);
