/*
 * files.h - the verbs on files of a sandbox: copy, list, read, write, move, remove, watch.
 *
 * What is inside may change under each of them, made by somebody who means us harm. Inside,
 * paths are resolved by the sandbox (see runtime/files.h). On the host, below the place that
 * the caller named, one name is taken at a time and no link is followed. Nothing that was
 * opened is opened again by name.
 *
 * All return 0 or a negative errno. What was done before a failure stays.
 */
#pragma once
#include "base/buf.h"
#include "core/files/file_access.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a tree may cost; 0 means the value here. Beyond it: -EFBIG. */
struct files_limits {
    uint64_t entries; /* 1 Mi */
    uint64_t bytes;   /* 256 GiB of data; holes count only where they are written */
};
#define FILES_MAX_ENTRIES (UINT64_C(1) << 20)
#define FILES_MAX_BYTES (UINT64_C(1) << 38)
#define FILES_MAX_DEPTH 200 /* each costs descriptors */

struct files_count {
    uint64_t files, directories, links, bytes;
    uint64_t skipped;     /* neither file, directory nor link; and what the kernel makes up */
    uint64_t stray_links; /* led out of the tree: left out, where that would be the host's */
};

/* One end of a copy. */
struct files_end {
    struct file_access *access; /* NULL: on the host */
    const char *path;
};

/*
 * Copies a file or a directory with all that is in it, as `cp -r` does: into `to` if that is a
 * directory, else to that name. "DIR/." means what is in DIR. `from` may be a link and is
 * followed; links below it are copied as links, and to the host only if they stay within the
 * copied tree. A link in the way is replaced, never followed; on the host `to` itself must not
 * be one, unless "/" is put behind it. Permissions and times come along, set-uid bits and
 * owners do not.
 *
 * Each file is copied whole or not at all: -EBUSY, when it changed again and again meanwhile.
 */
int files_copy(const struct files_end *from, const struct files_end *to,
        const struct files_limits *limits, struct files_count *count, struct carrel_error *err);

/*
 * The same for all that comes from `in`, which becomes the file `to`: that has its name when it
 * is whole, takes the place of a file or link, and has permissions 644.
 */
int files_copy_stream(int in, const struct files_end *to, const struct files_limits *limits,
        struct files_count *count, struct carrel_error *err);

/* Writes a file's bytes to `out` (a pipe is fine), up to its end at that time. */
int files_read(struct file_access *access, const char *path, int out, struct carrel_error *err);

/*
 * The same, and -EBUSY at the end when it changed meanwhile. A file that is over the limit is
 * refused before anything is written; its holes count.
 */
int files_read_whole(struct file_access *access, const char *path, int out,
        const struct files_limits *limits, struct carrel_error *err);

/* Writes what comes from `in`: `flags` O_APPEND or O_TRUNC, and O_EXCL. A link is followed. */
int files_write(struct file_access *access, const char *path, int in, int flags, mode_t mode,
        struct carrel_error *err);

/* With parents: those that are missing are made, and one that is there is fine. */
int files_make_dir(struct file_access *access, const char *path, mode_t mode, bool with_parents,
        struct carrel_error *err);

/* A file, link, or empty directory. */
int files_remove(struct file_access *access, const char *path, struct carrel_error *err);
/* A directory with all that is in it, too. No link is followed. */
int files_remove_tree(struct file_access *access, const char *path, struct carrel_error *err);

/* As mv(1): into `to` if that is a directory; copies where a rename cannot. */
int files_move(struct file_access *access, const char *from, const char *to, bool no_replace,
        struct carrel_error *err);

/* What a path is, a link itself unless `follow`; the text of a link is added to `target`. */
int files_stat(struct file_access *access, const char *path, bool follow,
        struct file_stat *stat, struct buf *target, struct carrel_error *err);

struct files_entry {
    const char *name;
    const struct file_stat *stat; /* NULL: was not asked for */
    const char *target;           /* what a link says; NULL: it is none */
};
typedef int (*files_each)(
        const struct files_entry *entry, void *context, struct carrel_error *err);

/* The entries of a directory in the order of their bytes, or a file by the name it was given.
 */
int files_list(struct file_access *access, const char *path, bool with_stat, files_each each,
        void *context, struct carrel_error *err);

const char *files_type_name(uint32_t mode); /* "file" "directory" "link" ... */
