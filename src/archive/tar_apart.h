/*
 * tar_apart.h - the entries of an archive, read by a process that can do nothing else.
 *
 * Whoever made the archive may take over what parses it. So that is a child without rights; it
 * hands on what it found in a form that is simple enough to be checked here once more.
 */
#pragma once
#include "archive/tar.h"

struct carrel_error;
struct tar_apart;

/* Begins to read `fd`, which stays the caller's: a tar of any packing; a pipe is fine. */
int tar_apart_open(int fd, const struct tar_limits *limits, struct tar_apart **out,
        struct carrel_error *err);

/* As tar_reader_next(). */
int tar_apart_next(struct tar_apart *tar, struct tar_entry *out, struct carrel_error *err);

/* As tar_reader_read(). */
ssize_t tar_apart_read(
        struct tar_apart *tar, void *data, size_t size, struct carrel_error *err);

void tar_apart_free(struct tar_apart *tar); /* NULL is fine; ends the child */
DEFINE_AUTO(struct tar_apart *, tar_apart_free)
