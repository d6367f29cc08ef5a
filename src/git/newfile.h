/* newfile.h - creates files in a directory that no other process writes to. */
#pragma once
#include <stddef.h>

/*
 * Writes a file that must not exist yet, without following a link. Nothing is synced: a sweep
 * or a repair handles the loss of such a file. Negative errno on failure.
 */
int newfile_write(int dir, const char *name, const void *data, size_t len);
int newfile_write_text(int dir, const char *name, const char *text);

/* Creates the directories in `names` (NULL at the end) in turn, if they do not exist. */
int newfile_make_dirs(int dir, const char *const *names);
