/* files_data.h - the bytes of files, from one descriptor to another, never held in memory. */
#pragma once
#include <stdint.h>

struct carrel_error;

/* Counts down; what goes beyond is -EFBIG. */
struct data_budget {
    uint64_t max;
    uint64_t used;
};
int data_spend(struct data_budget *budget, uint64_t bytes, struct carrel_error *err);

/* All of a stream. */
int data_pump(int in, int out, struct data_budget *budget, struct carrel_error *err);

/*
 * All of the file `in` into `out`, an empty file; holes stay holes. Whoever may write to the
 * file can do so meanwhile: then it is tried again, a few times. -EBUSY: it never held still.
 */
int data_copy(int in, int out, struct data_budget *budget, struct carrel_error *err);

struct stat;

/* Whether a file is the same as it was, as far as the kernel tells. */
int data_check_same(int fd, const struct stat *before, struct carrel_error *err);
