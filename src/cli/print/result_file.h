/* result_file.h - the file that --output names. */
#pragma once
#include <stddef.h>

struct carrel_error;

/*
 * Replaces the file `path` whole, or makes it. A pipe or a character device was put there for a
 * purpose: it gets the bytes and stays what it is. So does what a link leads to, if it is one
 * of these (/dev/stdout); all else, a link to a file too, is refused and stays as it was.
 */
int result_file_write(const char *path, const void *data, size_t len, struct carrel_error *err);

/* What is wrong with the name, before a program runs in vain. */
int result_file_check(const char *path, struct carrel_error *err);
