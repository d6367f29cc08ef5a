/* file_ref.h - "SANDBOX:PATH" on a command line: a file of a living sandbox. */
#pragma once
#include <stdbool.h>

struct carrel_error;

#define FILE_REF_MAX_ID 64

struct file_ref {
    char id[FILE_REF_MAX_ID + 1]; /* "": on the host */
    const char *path;             /* "SANDBOX:" alone means "." */
};

/*
 * What is before the first colon names a sandbox, unless there is a slash in it or nothing at
 * all: "./a:b" is a file of the host. Whether there is such a sandbox is not asked here.
 */
int file_ref_parse(const char *word, struct file_ref *out, struct carrel_error *err);

/* The same where only a sandbox will do. */
int file_ref_inside(const char *word, struct file_ref *out, struct carrel_error *err);
