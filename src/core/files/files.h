/*
 * files.h - operations on files of a sandbox: copy, list, read, write, move, remove, watch.
 *
 * An attacker inside may change anything during each of them. Inside, the sandbox resolves the
 * paths (see runtime/files.h). On the host, below the directory that the caller named, one name
 * is opened at a time and no link is followed. What was opened is never opened again by name.
 *
 * Where the sandbox has no descriptors of its files (file_access_far()), trees come and go as a
 * tar that the sandbox's side reads and writes: times are whole seconds, holes are written and
 * count. A watch, and a copy from one such sandbox to another, are -ENOTSUP.
 *
 * All return 0 or a negative errno. A failure does not undo what was done before.
 */
#pragma once
#include "base/buf.h"
#include "core/files/file_access.h"
#include "files/walk.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One end of a copy. */
struct files_end {
    struct file_access *access; /* NULL: on the host */
    const char *path;
};

/*
 * Copies a file or a directory with its content, like `cp -r`: into `to` if that is a
 * directory, else to that name. "DIR/." means the content of DIR. `from` may be a link and is
 * followed; links below it are copied as links, and to the host only if they stay within the
 * copied tree. An existing link at the target is replaced, never followed; on the host `to`
 * itself must not be one, unless it ends with "/". Permissions and times are copied, set-uid
 * bits and owners are not.
 *
 * Each file is copied whole or not at all: -EBUSY if it kept changing meanwhile.
 */
int files_copy(const struct files_end *from, const struct files_end *to,
        const struct files_limits *limits, struct files_count *count, struct carrel_error *err);

/*
 * The same for a stream `in`, which becomes the file `to`: it gets its name when it is
 * complete, replaces a file or link, and has permissions 644.
 */
int files_copy_stream(int in, const struct files_end *to, const struct files_limits *limits,
        struct files_count *count, struct carrel_error *err);

/* Writes a file's bytes to `out` (a pipe is fine), up to its current end. */
int files_read(struct file_access *access, const char *path, int out, struct carrel_error *err);

/*
 * The same, and -EBUSY at the end if it changed meanwhile. A file over the limit is refused
 * before anything is written; its holes count.
 */
int files_read_whole(struct file_access *access, const char *path, int out,
        const struct files_limits *limits, struct carrel_error *err);

/* Writes the stream `in`: `flags` O_APPEND or O_TRUNC, and O_EXCL. A link is followed. */
int files_write(struct file_access *access, const char *path, int in, int flags, mode_t mode,
        struct carrel_error *err);

/* With parents: missing parents are created, and an existing directory is fine. */
int files_make_dir(struct file_access *access, const char *path, mode_t mode, bool with_parents,
        struct carrel_error *err);

/* A file, link, or empty directory. */
int files_remove(struct file_access *access, const char *path, struct carrel_error *err);
/* Also a directory with its content. No link is followed. */
int files_remove_tree(struct file_access *access, const char *path, struct carrel_error *err);

/* Like mv(1): into `to` if that is a directory; copies if a rename is not possible. */
int files_move(struct file_access *access, const char *from, const char *to, bool no_replace,
        struct carrel_error *err);

/*
 * The stat of a path, of a link itself unless `follow`; the target of a link is added to
 * `target`.
 */
int files_stat(struct file_access *access, const char *path, bool follow,
        struct file_stat *stat, struct buf *target, struct carrel_error *err);

struct files_entry {
    const char *name;
    const struct file_stat *stat; /* NULL: not requested */
    const char *target;           /* the target of a link; NULL: not a link */
};
typedef int (*files_each)(
        const struct files_entry *entry, void *context, struct carrel_error *err);

/* The entries of a directory sorted by bytes, or a file by its given name. */
int files_list(struct file_access *access, const char *path, bool with_stat, files_each each,
        void *context, struct carrel_error *err);
