/* newfile.h - files that were not there before, in a directory that nobody else writes to. */
#pragma once
#include <stddef.h>

/*
 * Writes a file that must not exist yet, without following a link. Nothing is synced: these are
 * files whose loss a sweep or a repair makes good. Negative errno on failure.
 */
int newfile_write(int dir, const char *name, const void *data, size_t len);
int newfile_write_text(int dir, const char *name, const char *text);

/* Makes the directories in `names` (NULL at the end) in turn, those that are not there yet. */
int newfile_make_dirs(int dir, const char *const *names);
