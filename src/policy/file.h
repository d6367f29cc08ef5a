/*
 * file.h - where policy files are, and which of them are trusted.
 *
 * An agent may have written a repository's file; the others apply to every run. So no link is
 * followed that an attacker could redirect, only regular files are read, and a file that exists
 * but cannot be read, or that other users could have written, is an error: to ignore it would
 * drop its bounds.
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

/* The file named on the command line; it must exist. */
int file_read_named(
        struct arena *arena, const char *path, struct file *out, struct carrel_error *err);

/*
 * carrel.yaml in `cwd` or above it, or configs/profiles/default.yaml beside the nearest .git,
 * whichever is nearer; carrel.yaml if both are at the same level. NULL: the current directory.
 * Returns 1, or 0 if there is none.
 */
int file_find_repository(
        struct arena *arena, const char *cwd, struct file *out, struct carrel_error *err);

/* `path`, which belongs to the caller or to root. Returns 1, or 0 if it does not exist. */
int file_read_user(
        struct arena *arena, const char *path, struct file *out, struct carrel_error *err);

/* `path`, which only root can have written, and its directory as well. Returns 1 or 0. */
int file_read_system(
        struct arena *arena, const char *path, struct file *out, struct carrel_error *err);
