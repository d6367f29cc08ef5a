/* files_data.h - the bytes of files, from one descriptor to another, never held in memory. */
#pragma once
#include <stdint.h>

struct carrel_error;
struct file_access;

/* Counts down; what goes beyond is -EFBIG. */
struct data_budget {
    uint64_t max;
    uint64_t used;
    struct file_access *access; /* to the sandbox that is written to; NULL: to the host */
};
int data_spend(struct data_budget *budget, uint64_t bytes, struct carrel_error *err);

/* All of a stream. -ENOSPC, here and below: the sandbox has reached its disk limit. */
int data_pump(int in, int out, struct data_budget *budget, struct carrel_error *err);

/*
 * All of the file `in` into `out`, an empty file; holes stay holes. Whoever may write to the
 * file can do so meanwhile: then it is tried again, a few times. -EBUSY: it never held still.
 */
int data_copy(int in, int out, struct data_budget *budget, struct carrel_error *err);

struct stat;

/*
 * What a file is, at a moment from which on a change can be told: no write is under way, and
 * the next one will have another time. Goes to the beginning of the file.
 */
int data_settle(int fd, struct stat *st, struct carrel_error *err);

/* Whether a file is the same as it was when data_settle() looked. */
int data_check_same(int fd, const struct stat *before, struct carrel_error *err);
