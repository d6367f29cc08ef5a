/*
 * files.h - operations on the files of a sandbox from outside.
 *
 * Every operation is one request with one answer, both plain data and a descriptor or two, so
 * that they can be sent through a socket. The path is resolved inside the sandbox, as its user,
 * by the sandbox's own side: the host never follows a path that a program can change. Magic
 * links (/proc/self/root ...) are refused, nothing waits for a FIFO or a device, and only
 * regular files and directories are opened.
 *
 * A returned directory descriptor may be read, and used as `dir` of further requests. A caller
 * that opens something in it directly must use one name at a time, and follow no link.
 *
 * A runtime without CAN_DESCRIPTORS answers with streams. A file is opened to read or to write,
 * not both, and is read or written once, from its beginning (O_APPEND: its end) to its end.
 * A read that fails with ECONNRESET means that the rest did not come. Directories are not
 * opened but listed, packed and unpacked, and there is neither `dir` nor FILE_WATCH: -ENOTSUP.
 * Where there are descriptors, FILE_LIST, _PACK, _UNPACK and _REMOVE_TREE are -ENOTSUP.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

struct carrel_error;
struct sandbox;

enum file_op {
    FILE_OPEN,      /* flags as for open(2), mode; answer: fd */
    FILE_STAT,      /* answer: stat. FILE_NO_FOLLOW: of a link itself */
    FILE_READ_LINK, /* answer: fd, only for file_read_link() */
    FILE_MAKE_DIR,  /* mode */
    FILE_REMOVE,    /* anything except a directory (-EISDIR); never follows */
    FILE_REMOVE_DIR,
    FILE_RENAME,   /* to `other`; FILE_NO_REPLACE: -EEXIST instead of replacing */
    FILE_LINK,     /* a second name, `other`, for a file; never follows */
    FILE_SYMLINK,  /* at `path`, with the target `other`, which is any text */
    FILE_SET_MODE, /* mode; FILE_NO_FOLLOW: a link is -ELOOP */
    FILE_SET_TIMES,
    FILE_WATCH,  /* adds a watch to the inotify descriptor `watch`; answer: watch */
    FILE_LIST,   /* of a directory; answer: fd, only for file_list_next() */
    FILE_PACK,   /* a directory's content, or one file, which may be a link to it; answer: fd, a
                    tar to be read by tar_plain_next(), with all links, with TAR_OTHER for what
                    is neither, and with TAR_FAILED at its end if it is incomplete */
    FILE_UNPACK, /* below a directory; answer: fd, which takes a tar of tar_writer_open() and
                    file_end(). As file_unpack() does it; FILE_KEEP_DIRS */
    FILE_REMOVE_TREE, /* a directory with its content; answer: fd, for file_end(); no link is
                         followed */
    FILE_OP_COUNT
};

/* Flags of all operations except FILE_OPEN. */
enum file_flag {
    FILE_NO_FOLLOW = 1, /* the last component; FILE_STAT, _SET_MODE, _SET_TIMES, _WATCH */
    FILE_NO_REPLACE = 2,
    FILE_KEEP_DIRS = 4, /* directories that exist keep their permissions and times */
};

struct file_request {
    enum file_op op;
    /*
     * -1: `path` and `other` are as a program would write them, relative ones relative to
     * box->workspace. Else a directory of this sandbox: they stay below it, and no component
     * may be a link, not even one created meanwhile (-ELOOP, -EXDEV).
     */
    int dir;
    const char *path;
    const char *other; /* of FILE_RENAME, _LINK, _SYMLINK */
    int flags;
    mode_t mode;              /* permissions; set-uid and set-gid bits are never set */
    struct timespec times[2]; /* access, change; UTIME_NOW and UTIME_OMIT as usual */
    int watch;                /* created by the caller: inotify_init1() */
    uint32_t events;          /* IN_...: what to watch for */
    bool has_user;            /* else the sandbox's own; -EPERM if there is no other */
    uid_t uid;
    gid_t gid;
};
#define FILE_REQUEST_INIT                                                                      \
    (struct file_request)                                                                      \
    {                                                                                          \
        .dir = -1, .watch = -1                                                                 \
    }

/* As stat(2) gives it inside: the ids are the sandbox's. */
struct file_stat {
    uint64_t device, inode;
    uint64_t links;
    uint32_t mode; /* with the type: S_ISREG() ... */
    uint32_t uid, gid;
    uint64_t size;
    uint64_t held_bytes; /* on disk: less than size in a sparse file */
    struct timespec atime, mtime, ctime;
};

struct file_answer {
    int fd;    /* the caller closes it; -1: none */
    int watch; /* the watch's number */
    struct file_stat stat;
};
#define FILE_ANSWER_INIT                                                                       \
    (struct file_answer)                                                                       \
    {                                                                                          \
        .fd = -1, .watch = -1                                                                  \
    }

/*
 * Carries it out. Errors are those of the system calls: -ENOENT, -EEXIST, -ENOTDIR, -EISDIR,
 * -ENOTEMPTY, -EACCES, -ELOOP (also a magic link), -EXDEV ... and -EINVAL for what is neither a
 * file nor a directory. -ENOTSUP: the runtime cannot. `answer` is written on success only.
 */
int sandbox_file(struct sandbox *box, const struct file_request *request,
        struct file_answer *answer, struct carrel_error *err);

/*
 * The target of a link, from the descriptor of FILE_READ_LINK. Returns its length without a
 * NUL; -ENAMETOOLONG if it does not fit with one.
 */
int file_read_link(int fd, char *text, size_t size, struct carrel_error *err);

/*
 * Ends a file that was opened to write, or a tar: waits until all of it is stored, and says
 * whether, in words of the far side if it has any. A stream that is closed without that may
 * have stored any part. For a descriptor of the file itself there is nothing to wait for. The
 * caller still closes it.
 */
int file_end(int fd, struct carrel_error *err);

/* An entry of a directory, from the descriptor of FILE_LIST. */
struct file_entry {
    struct file_stat stat; /* of a link itself */
    char name[256];        /* NAME_MAX and a NUL; one component, any bytes */
};

/* Returns 1, or 0 after the last one; the order is the file system's. */
int file_list_next(int fd, struct file_entry *out, struct carrel_error *err);

/* Whether a request is valid; for receivers of untrusted requests. */
int file_check(const struct file_request *request, struct carrel_error *err);
