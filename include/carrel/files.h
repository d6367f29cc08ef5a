/*
 * files.h - files of a living sandbox: read, write, list, copy, watch, archive.
 *
 * Paths are as a program inside would write them; relative ones begin at its working directory.
 * The sandbox resolves them, with the rights of its user. Programs in it may change anything
 * during each call: what is read is bounded, and nothing leads out of the sandbox, or on the
 * host out of the directory that the caller named. A failure does not undo what was done before
 * it.
 */
#pragma once
#include <carrel/sandbox.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * How to do it; NULL: all defaults. Start from CARREL_FILES_OPTIONS_INIT. An option that does
 * not concern a call is refused (-EINVAL).
 */
struct carrel_files_options {
    size_t size;   /* of this struct, filled in by the INIT macro */
    bool has_user; /* all calls: act as this user of the sandbox, not as its own */
    uid_t uid;
    gid_t gid;
    uint64_t max_entries; /* copy, export, import; 0: 1 Mi. Beyond it: -EFBIG */
    uint64_t max_bytes;   /* copy, export, import, read whole; 0: 256 GiB. Beyond it: -EFBIG */
    bool has_mode;        /* write, make_dir */
    mode_t mode;          /* permissions of what is made; else 0644, of a directory 0755 */
    bool is_append;       /* write: at the end of the file */
    bool no_replace;      /* write, move: -EEXIST if there is something of that name */
    bool with_parents;    /* make_dir: missing parents too; an existing directory is fine */
    bool is_recursive;    /* remove: a directory with its content; watch: subdirectories too */
    bool follows_link;    /* stat: what a link leads to */
    bool names_only;      /* list: without the stat of each entry */
    bool is_whole;        /* read: -EBUSY at the end if the file changed meanwhile */
};

#define CARREL_FILES_OPTIONS_INIT                                                              \
    {                                                                                          \
        .size = sizeof(struct carrel_files_options)                                            \
    }

struct carrel_file_time {
    int64_t seconds; /* since 1970 */
    uint32_t nanoseconds;
};

/* What stat(2) says inside: the ids are the sandbox's. Start from CARREL_FILE_STAT_INIT. */
struct carrel_file_stat {
    size_t size; /* of this struct, filled in by the INIT macro */
    uint64_t device, inode, links;
    uint32_t mode; /* with the type: S_ISREG() ... */
    uint32_t uid, gid;
    uint64_t bytes;
    uint64_t held_bytes; /* on disk: less than `bytes` in a sparse file */
    struct carrel_file_time accessed, modified, changed;
};

#define CARREL_FILE_STAT_INIT                                                                  \
    {                                                                                          \
        .size = sizeof(struct carrel_file_stat)                                                \
    }

/* What a list calls back with; valid during the call. */
struct carrel_file_entry {
    size_t size;
    const char *name;
    const struct carrel_file_stat *stat; /* NULL: names_only */
    const char *target;                  /* of a link; NULL: it is none */
};

/* What was copied. Start from CARREL_FILES_COUNT_INIT. */
struct carrel_files_count {
    size_t size; /* of this struct, filled in by the INIT macro */
    uint64_t files, directories, links, bytes;
    uint64_t skipped; /* neither file, directory nor link; and virtual files of the kernel */
    uint64_t stray_links; /* would lead out of the tree: left out of copies to the host */
};

#define CARREL_FILES_COUNT_INIT                                                                \
    {                                                                                          \
        .size = sizeof(struct carrel_files_count)                                              \
    }

/* Writes a file's bytes to the descriptor `out` (a pipe is fine), up to its current end. */
CARREL_PUBLIC int carrel_files_read(struct carrel_sandbox *sandbox, const char *path, int out,
        const struct carrel_files_options *options, struct carrel_error *err);

/* The descriptor `in`, to its end, becomes the content of a file. A link is followed. */
CARREL_PUBLIC int carrel_files_write(struct carrel_sandbox *sandbox, const char *path, int in,
        const struct carrel_files_options *options, struct carrel_error *err);

/*
 * Calls `visit` for each entry of a directory, sorted by bytes, or for a file by its given
 * name. An answer other than 0 ends the list and is returned.
 */
CARREL_PUBLIC int carrel_files_list(struct carrel_sandbox *sandbox, const char *path,
        const struct carrel_files_options *options,
        int (*visit)(const struct carrel_file_entry *entry, void *context), void *context,
        struct carrel_error *err);

/*
 * Of a link: of itself, unless follows_link. *target (may be NULL) becomes what a link leads
 * to, freed with carrel_free(); NULL if it is none.
 */
CARREL_PUBLIC int carrel_files_stat(struct carrel_sandbox *sandbox, const char *path,
        const struct carrel_files_options *options, struct carrel_file_stat *out, char **target,
        struct carrel_error *err);

CARREL_PUBLIC int carrel_files_make_dir(struct carrel_sandbox *sandbox, const char *path,
        const struct carrel_files_options *options, struct carrel_error *err);

/* Like mv(1): into `to` if that is a directory; copies if a rename is not possible. */
CARREL_PUBLIC int carrel_files_move(struct carrel_sandbox *sandbox, const char *from,
        const char *to, const struct carrel_files_options *options, struct carrel_error *err);

/* A file, link or empty directory. No link is followed. */
CARREL_PUBLIC int carrel_files_remove(struct carrel_sandbox *sandbox, const char *path,
        const struct carrel_files_options *options, struct carrel_error *err);

/*
 * Copies a file or a directory with its content between two sandboxes, within one, or from or
 * to the host (a sandbox of NULL; not both). Like `cp -r`: into `to` if that is a directory,
 * else to that name; "DIR/." is the content of DIR. `from` may be a link in a sandbox and is
 * followed; links below it are copied as links. An existing link at the target is replaced,
 * never followed. On the host neither path is a link or passes one, but those of the system
 * (-ELOOP). Permissions and times are copied, owners and set-uid bits are not. Each file is
 * copied whole or not at all: -EBUSY if it kept changing. `count` may be NULL.
 */
CARREL_PUBLIC int carrel_files_copy(struct carrel_sandbox *from_sandbox, const char *from,
        struct carrel_sandbox *to_sandbox, const char *to,
        const struct carrel_files_options *options, struct carrel_files_count *count,
        struct carrel_error *err);

/*
 * The same for the descriptor `in`, which becomes the file `to`: it gets its name when it is
 * complete, replaces a file or link, and has permissions 644.
 */
CARREL_PUBLIC int carrel_files_copy_stream(struct carrel_sandbox *sandbox, const char *to,
        int in, const struct carrel_files_options *options, struct carrel_files_count *count,
        struct carrel_error *err);

/*
 * Writes the content of a directory, or one file, to the descriptor `out` as a plain tar. Only
 * files, directories and links that stay within it; no owners, no set-uid bits. -EBUSY: a file
 * changed while it was read. After a failure the archive is incomplete.
 */
CARREL_PUBLIC int carrel_files_export(struct carrel_sandbox *sandbox, const char *path, int out,
        const struct carrel_files_options *options, struct carrel_files_count *count,
        struct carrel_error *err);

/*
 * Unpacks a tar from the descriptor `in`, plain or compressed with gzip, zstd or xz, below a
 * directory. The archive is untrusted: the program carrel, executed without rights, parses it,
 * and the sandbox makes the files, following no link. Devices, FIFOs and sockets are skipped.
 * -EBADMSG: it is no archive, or is damaged.
 */
CARREL_PUBLIC int carrel_files_import(struct carrel_sandbox *sandbox, const char *path, int in,
        const struct carrel_files_options *options, struct carrel_files_count *count,
        struct carrel_error *err);

enum carrel_watch_kind {
    CARREL_WATCH_READY, /* the first one: from here on nothing is missed */
    CARREL_WATCH_CREATE,
    CARREL_WATCH_WRITE,
    CARREL_WATCH_REMOVE,
    CARREL_WATCH_RENAME,   /* within the watched tree; else it is a create or a remove */
    CARREL_WATCH_CHMOD,    /* permissions, times or owner */
    CARREL_WATCH_OVERFLOW, /* there were too many: some were missed */
    CARREL_WATCH_END,      /* the last one: the path was removed, or the sandbox has ended */
};

/* "ready" "create" "write" "remove" "rename" "chmod" "overflow" "end" */
CARREL_PUBLIC const char *carrel_watch_kind_name(enum carrel_watch_kind kind);

struct carrel_watch_event {
    size_t size;
    enum carrel_watch_kind kind;
    const char *path; /* begins with the path that is watched */
    const char *to;   /* of a rename; else NULL */
    bool is_directory;
};

struct carrel_watch; /* a handle, for one thread at a time; independent of the sandbox's */

/*
 * Watches a file, or the content of a directory; with is_recursive also subdirectories, and new
 * ones: what was made in a new one before it was watched is told as created, perhaps twice.
 */
CARREL_PUBLIC int carrel_watch_open(struct carrel_sandbox *sandbox, const char *path,
        const struct carrel_files_options *options, struct carrel_watch **out,
        struct carrel_error *err);

/* Readable when carrel_watch_next() is worth a call. It belongs to the handle. */
CARREL_PUBLIC int carrel_watch_fd(const struct carrel_watch *watch);

/*
 * Returns 1 and the next event, valid until the next call, or 0 if there is none now. Does not
 * wait; call it until it returns 0, and again when the descriptor is readable. -ESHUTDOWN after
 * CARREL_WATCH_END.
 */
CARREL_PUBLIC int carrel_watch_next(struct carrel_watch *watch,
        const struct carrel_watch_event **out, struct carrel_error *err);

CARREL_PUBLIC void carrel_watch_free(struct carrel_watch *watch); /* NULL is fine */

#ifdef __cplusplus
}
#endif
