/*
 * file_access.h - access to the files of a sandbox, from any process.
 *
 * The functions in files.h use a struct file_access, not a sandbox: the process that created
 * the sandbox has one that asks it directly (file_access_of()), a client of its keeper one that
 * asks through the keeper's socket.
 */
#pragma once
#include "runtime/files.h"

struct file_access;

struct file_access_ops {
    /* As sandbox_file(): one request, one answer. */
    int (*ask)(struct file_access *access, const struct file_request *request,
            struct file_answer *answer, struct carrel_error *err);
    void (*close)(struct file_access *access); /* NULL: nothing to close */
};

/* Plain data, closed by its owner. Only the ops use `box` and `fd`. */
struct file_access {
    const struct file_access_ops *ops;
    struct sandbox *box;
    int fd;
    bool has_user; /* every request is made as this user */
    uid_t uid;
    gid_t gid;
};
#define FILE_ACCESS_INIT                                                                       \
    (struct file_access)                                                                       \
    {                                                                                          \
        .fd = -1                                                                               \
    }

/* Access to a sandbox that this process created; `box` outlives it. */
struct file_access file_access_of(struct sandbox *box);

int file_access_ask(struct file_access *access, const struct file_request *request,
        struct file_answer *answer, struct carrel_error *err);

/*
 * The name of the runtime if its files are streams here, not descriptors (CAN_DESCRIPTORS);
 * else NULL. `access` may be NULL, the host.
 */
const char *file_access_far(const struct file_access *access);

/* -ENOTSUP: "runtime NAME: cannot WHAT: it has no descriptors of files". */
int file_access_refuse(
        const struct file_access *access, const char *what, struct carrel_error *err);

/*
 * Interprets the result `r` of an operation that read through descriptors of this access. They
 * stay open when the sandbox ends and its files are removed: a missing file may only mean that.
 * Returns `r`, or that the sandbox has ended.
 */
int file_access_outcome(struct file_access *access, int r, struct carrel_error *err);

void file_access_close(struct file_access *access); /* one that was never opened is fine */
