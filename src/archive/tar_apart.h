/*
 * tar_apart.h - reads the entries of an archive in a confined process.
 *
 * An archive may take over its parser. So the parser is a child without rights; it passes the
 * entries on in a form that is simple enough to be checked again here.
 */
#pragma once
#include "archive/tar_reader.h"

struct carrel_error;
struct tar_apart;

/* Starts to read `fd`, which the caller keeps: a tar of any packing; a pipe is fine. */
int tar_apart_open(int fd, const struct tar_limits *limits, struct tar_apart **out,
        struct carrel_error *err);

/* As tar_reader_next(). */
int tar_apart_next(struct tar_apart *tar, struct tar_entry *out, struct carrel_error *err);

/* As tar_reader_read(). */
ssize_t tar_apart_read(
        struct tar_apart *tar, void *data, size_t size, struct carrel_error *err);

void tar_apart_free(struct tar_apart *tar); /* NULL is fine; kills the child */
DEFINE_AUTO(struct tar_apart *, tar_apart_free)
