/*
 * git.h - runs the git program of the host, with no configuration that an agent could have
 * written.
 *
 * Every call names its git dir; nothing is discovered. GIT_SCRUBBED reads no configuration of
 * user or system, runs no hook, no fsmonitor, no filter of a private config, and uses no
 * protocol. The repository's own configuration is still read: what it could start is
 * overridden, except filters, merge drivers, external diffs and textconv, which the caller must
 * not ask for if a run's content is involved (--no-ext-diff, --no-textconv, no work tree).
 * GIT_AS_USER keeps the caller's configuration, because it defines the filters, and environment
 * (of the GIT_* variables only those about the location of the configuration and access to
 * servers); hooks stay off. The repository's own configuration may be a run's work: use
 * repo_user_git(), which turns off what it could start. It is for content that the user's
 * repository already has, never for what a run wrote.
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
    const char *object_dir; /* NULL: the git dir's own; else new objects are written here ... */
    const char *alternate;  /* ... and objects are also read from here (one directory) */
    const char *const *settings; /* NULL-terminated "key=value"; NULL: none */
    enum git_trust trust;
    bool may_fetch; /* GIT_AS_USER: objects that a partial clone does not have; else never */
};

/*
 * No call waits longer for what git has found, a FIFO or a silent server; one that writes to a
 * reader of the caller may.
 */
#define GIT_LONGEST_MS (60U * 60 * 1000)

struct git_io {
    const void *input; /* written to stdin; NULL and input_fd < 0: end of file at once */
    size_t input_len;
    int input_fd;  /* used if input == NULL; -1: none. Not closed. */
    int output_fd; /* receives stdout; -1: stdout goes to `output` or is dropped. Not closed. */
    struct buf *output;  /* NULL: dropped. An overflow is an error (-EFBIG) */
    unsigned timeout_ms; /* then it is killed: -ETIMEDOUT; 0: GIT_LONGEST_MS */
    /*
     * Instead of `input`: returns the next bytes of stdin. Returns how many, 0 at the end, or a
     * negative errno (with err set): then the program is killed and git_run returns it.
     */
    ssize_t (*source)(void *context, char *data, size_t size, struct carrel_error *err);
    /* Instead of `output`: receives stdout as it is read. Negative: as above. */
    int (*sink)(void *context, const char *data, size_t len, struct carrel_error *err);
    void *context;
    uint64_t max_memory_bytes; /* 0: no limit; RLIMIT_DATA, so without file mappings */
    uint64_t max_file_bytes;   /* 0: no limit; RLIMIT_FSIZE */
    bool finishes; /* even if we are killed: it is short, and holds locks of the repository */
};
#define GIT_IO_INIT                                                                            \
    {                                                                                          \
        .input_fd = -1, .output_fd = -1                                                        \
    }

/*
 * Runs git with `args` (NULL-terminated, without "git"; they may begin with "-c", which
 * overrides ours) to its end. Returns its exit status (0..255), or a negative errno if it could
 * not be run or was killed (-EINTR: by a foreign signal). If the status is not 0, err has git's
 * last line of complaint, escaped; the caller decides whether that is a failure. -ENOENT with a
 * clear message if there is no git program. io may be NULL. A scrubbed git that needs a name is
 * "carrel <carrel@localhost>".
 */
int git_run(const struct git *git, const char *const *args, struct git_io *io,
        struct carrel_error *err);

/*
 * The same if any status except 0 is a failure: -EIO with git's message. Removes the last
 * newline of the output.
 */
int git_expect(const struct git *git, const char *const *args, struct git_io *io,
        struct carrel_error *err);

/* The same with `input` on its standard input; if that is empty, git is not run. */
int git_feed(const struct git *git, const char *const *args, const struct buf *input,
        struct carrel_error *err);

/* For "git ..." with the words as arguments: GIT_ARGS("rev-parse", "HEAD"). */
#define GIT_ARGS(...) ((const char *const[]){ __VA_ARGS__, NULL })
