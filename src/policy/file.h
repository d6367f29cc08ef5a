/*
 * file.h - where policy files are, and which of them can be believed.
 *
 * A repository's file was perhaps written by an agent, the others decide over every run. So no
 * link is followed that somebody could point elsewhere, nothing but a regular file is read, and
 * a file that is there but cannot be read, or that others could have written, is an error: to
 * go on as if it were not there would drop its bounds.
 */
#pragma once
#include <stddef.h>

struct arena;
struct carrel_error;

struct file {
    const char *name; /* as messages show it */
    const char *text;
    size_t len;
};

/* What was named on the command line; it must be there. */
int file_read_named(
        struct arena *arena, const char *path, struct file *out, struct carrel_error *err);

/*
 * carrel.yaml in `cwd` or above it, or configs/profiles/default.yaml beside the nearest .git,
 * whichever is nearer; carrel.yaml where both are. NULL: the current directory. Returns 1, or 0
 * when there is none.
 */
int file_find_repository(
        struct arena *arena, const char *cwd, struct file *out, struct carrel_error *err);

/* `path`, which belongs to the caller or to root. Returns 1, or 0 when it is not there. */
int file_read_user(
        struct arena *arena, const char *path, struct file *out, struct carrel_error *err);

/* `path`, which nobody but root can have written, nor its directory. Returns 1 or 0. */
int file_read_system(
        struct arena *arena, const char *path, struct file *out, struct carrel_error *err);
