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
    /* -ENOSPC: the sandbox has reached its disk limit. NULL: nobody would know. */
    int (*check_room)(struct file_access *access, struct carrel_error *err);
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
    uint64_t unasked_bytes; /* written since we last asked whether there is room */
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
 * So much was written into a descriptor that came through the door. It knows of no disk limit,
 * so the sandbox is asked every so often: -ENOSPC when that is reached. To be called after
 * FILE_DOOR_BYTES at most.
 */
#define FILE_DOOR_BYTES (2U << 20)
int file_door_wrote(struct file_access *access, uint64_t bytes, struct carrel_error *err);

/*
 * How something that read through descriptors of the door has come out, `r`. They outlive the
 * sandbox while its files are being removed: what is missing then was not gone before. Returns
 * `r`, or that the sandbox has ended.
 */
int file_access_outcome(struct file_access *access, int r, struct carrel_error *err);

void file_access_close(struct file_access *access); /* one that was never opened is fine */
