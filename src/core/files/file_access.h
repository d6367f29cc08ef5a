/*
 * file_access.h - the way to the files of a sandbox, whoever holds it.
 *
 * The verbs in files.h know a door, not a sandbox: whoever made the sandbox has one that asks
 * it (file_door_of()), and a client of its keeper one that asks through the keeper's socket.
 */
#pragma once
#include "runtime/files.h"

struct file_door;

struct file_door_ops {
    /* As sandbox_file(): one request, one answer. */
    int (*ask)(struct file_door *door, const struct file_request *request,
            struct file_answer *answer, struct carrel_error *err);
    /* -ENOSPC: the sandbox has reached its disk limit. NULL: nobody would know. */
    int (*check_room)(struct file_door *door, struct carrel_error *err);
    void (*close)(struct file_door *door); /* NULL: nothing to close */
};

/* Plain data, the owner's to close. `box` and `fd` are for the ops alone. */
struct file_door {
    const struct file_door_ops *ops;
    struct sandbox *box;
    int fd;
    bool has_user; /* everything is asked for as this user */
    uid_t uid;
    gid_t gid;
    uint64_t unasked_bytes; /* written since we last asked whether there is room */
};
#define FILE_DOOR_INIT                                                                         \
    (struct file_door)                                                                         \
    {                                                                                          \
        .fd = -1                                                                               \
    }

/* The door to a sandbox that this process made; `box` outlives it. */
struct file_door file_door_of(struct sandbox *box);

int file_door_ask(struct file_door *door, const struct file_request *request,
        struct file_answer *answer, struct carrel_error *err);

/*
 * So much was written into a descriptor that came through the door. It knows of no disk limit,
 * so the sandbox is asked every so often: -ENOSPC when that is reached. To be called after
 * FILE_DOOR_BYTES at most.
 */
#define FILE_DOOR_BYTES (2U << 20)
int file_door_wrote(struct file_door *door, uint64_t bytes, struct carrel_error *err);

/*
 * How something that read through descriptors of the door has come out, `r`. They outlive the
 * sandbox while its files are being removed: what is missing then was not gone before. Returns
 * `r`, or that the sandbox has ended.
 */
int file_door_outcome(struct file_door *door, int r, struct carrel_error *err);

void file_door_close(struct file_door *door); /* one that was never opened is fine */
