/* data.h - copies the bytes of files between descriptors, never held in memory whole. */
#pragma once
#include <stddef.h>
#include <stdint.h>

struct carrel_error;

/* Counts down; beyond it: -EFBIG. */
struct data_budget {
    uint64_t max;
    uint64_t used;
};
int data_spend(struct data_budget *budget, uint64_t bytes, struct carrel_error *err);

/* All of a stream. */
int data_pump(int in, int out, struct data_budget *budget, struct carrel_error *err);

/*
 * All of the file `in` into `out`, an empty file; holes stay holes. If the file is written
 * meanwhile, the copy is repeated a few times. -EBUSY: it kept changing.
 */
int data_copy(int in, int out, struct data_budget *budget, struct carrel_error *err);

/* Writes at an offset of a new file, which may be far behind its end: zeroes become holes. */
int data_put(int out, const char *data, size_t len, uint64_t at);

struct stat;

/*
 * The stat of a file, at a moment from which on a change can be detected: no write is in
 * progress, and the next one will have another time. Seeks to the beginning of the file.
 */
int data_settle(int fd, struct stat *st, struct carrel_error *err);

/* Whether a file is the same as at data_settle(). */
int data_check_same(int fd, const struct stat *before, struct carrel_error *err);
