/*
 * helper.h - a small program of carrel in a sandbox of its own, with a workspace in it.
 *
 * Git on a run's files obeys the run's configuration, so it needs a sandbox; a fresh one, in
 * which no process of the run exists.
 */
#pragma once
#include "base/auto.h"
#include "core/disk/disk.h"
#include "runtime/runtime.h"

struct carrel_error;

#define HELPER_ARGS_MAX 8

struct helper_spec {
    struct runtime *runtime;
    const char *root; /* as those of a sandbox; NULL: the host's own programs */
    const struct sandbox_overlay *root_overlay;
    const struct sandbox_mount *mounts;
    size_t n_mounts;
    enum network network;
    bool has_user;
    uid_t uid;
    gid_t gid;
    uint64_t disk_bytes; /* of its private space; 0: a default */
    const uint64_t
            *limits; /* of the run, one for each enum limit; NULL: as much as git needs */
    const uint64_t *maxima; /* the same, never exceeded; 0, and NULL: none */
    int limited;            /* directory that it may write to, if has_limit */
    bool has_limit;
    uint64_t max_bytes;      /* that may be in there */
    const char *script;      /* for /bin/sh */
    const char *const *args; /* of the script, at most HELPER_ARGS_MAX; NULL: none */
    const char *const *env;  /* NULL-terminated "K=V", added to a minimal environment */
};

struct helper {
    struct sandbox *box;
    struct process process; /* stdout_fd is the caller's to read; stderr is dropped */
    struct disk disk;
    uint64_t deadline_ns;
};
void helper_finish(struct helper helper);
DEFINE_AUTO(struct helper, helper_finish)
#define HELPER_INIT                                                                            \
    (struct helper)                                                                            \
    {                                                                                          \
        .process = PROCESS_INIT, .disk = DISK_INIT                                             \
    }

int helper_start(const struct helper_spec *spec, unsigned timeout_ms, struct helper *out,
        struct carrel_error *err);

/*
 * The limit of the directory is enforced while one of these waits, and only then: -EDQUOT.
 * The first reads one line of output, without its newline; it must end within the deadline and
 * `size`.
 */
int helper_read_line(struct helper *helper, char *line, size_t size, struct carrel_error *err);

/* Waits for the end. Returns the exit status; -ETIMEDOUT, and -EIO when it was killed. */
int helper_wait(struct helper *helper, struct carrel_error *err);
