/*
 * git.h - the git program of the host, with nothing that an agent could have written as its
 * configuration.
 *
 * Every call names its git dir; nothing is discovered. GIT_SCRUBBED sees no configuration of
 * user or system, runs no hook, no fsmonitor, no filter of a private config, speaks no
 * protocol. The repository's own configuration is still read: what it could start is
 * overridden, but for filters, merge drivers, external diffs and textconv, which the caller
 * must not ask for where a run's content is concerned (--no-ext-diff, --no-textconv, no work
 * tree). GIT_AS_USER keeps the caller's environment (of its GIT_* variables those that say
 * where the configuration is and how to reach a server) and configuration, because filters live
 * there; hooks stay off. It is for content the user's repository already has, never for what a
 * run wrote.
 */
#pragma once
#include "base/buf.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct carrel_error;

enum git_trust { GIT_SCRUBBED, GIT_AS_USER };

struct git {
    const char *git_dir;    /* absolute */
    const char *work_tree;  /* NULL: none; also the working directory of the program */
    const char *index_file; /* NULL: the git dir's own */
    const char *object_dir; /* NULL: the git dir's own; else new objects go here ... */
    const char *alternate;  /* ... and objects are also read from here (one directory) */
    enum git_trust trust;
};

struct git_io {
    const void *input; /* fed to stdin; NULL and input_fd < 0: end of file at once */
    size_t input_len;
    int input_fd;        /* used when input == NULL; -1: none. Not closed. */
    int output_fd;       /* stdout goes here; -1: into `output` or nowhere. Not closed. */
    struct buf *output;  /* NULL: dropped. It overflowing is an error (-EFBIG) */
    unsigned timeout_ms; /* 0: none; then the program is killed and the call is -ETIMEDOUT */
    /*
     * Instead of `input`: asked for the next bytes of stdin. Returns how many it gave, 0 at the
     * end, or a negative errno (with err set): the program is killed and git_run returns it.
     */
    ssize_t (*source)(void *context, char *data, size_t size, struct carrel_error *err);
    /* Instead of `output`: takes stdout as it comes. Negative: as above. */
    int (*sink)(void *context, const char *data, size_t len, struct carrel_error *err);
    void *context;
    uint64_t max_memory_bytes; /* 0: no limit; RLIMIT_DATA of the program: maps do not count */
    uint64_t max_file_bytes;   /* 0: no limit; RLIMIT_FSIZE */
    bool finishes; /* also when we are killed: it is short, and holds locks of the repository */
};
#define GIT_IO_INIT                                                                            \
    {                                                                                          \
        .input_fd = -1, .output_fd = -1                                                        \
    }

/*
 * Runs git with `args` (NULL-terminated, without "git"; they may begin with "-c", which
 * outranks ours) to its end. Returns its exit status (0..255), or a negative errno when it
 * could not be run or was killed (-EINTR: by a signal that was not ours). When the status is
 * not 0, err holds git's last line of complaint, escaped; the caller decides whether that is a
 * failure. -ENOENT with a clear message when there is no git program. io may be NULL. A
 * scrubbed git that needs a name is "carrel <carrel@localhost>".
 */
int git_run(const struct git *git, const char *const *args, struct git_io *io,
        struct carrel_error *err);

/* The same when anything but status 0 is a failure: -EIO with git's words. Output without its
 * last newline. */
int git_expect(const struct git *git, const char *const *args, struct git_io *io,
        struct carrel_error *err);

/* The same with `input` on its standard input; without any, git is not run. */
int git_feed(const struct git *git, const char *const *args, const struct buf *input,
        struct carrel_error *err);

/* For "git ..." with the words as arguments: GIT_ARGS("rev-parse", "HEAD"). */
#define GIT_ARGS(...) ((const char *const[]){ __VA_ARGS__, NULL })
