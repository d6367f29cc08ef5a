/* dir.h - the names in a directory. */
#pragma once
#include "base/auto.h"
#include <dirent.h>

/*
 * A stream over the directory `name` below `at`, with a position of its own; "." is `at`
 * itself. A symbolic link is not followed. NULL with errno.
 */
DIR *dir_open(int at, const char *name);
void dir_close(DIR *dir); /* NULL is fine; keeps errno */
DEFINE_AUTO(DIR *, dir_close)

/* The next name but "." and ".."; NULL at the end, and for a stream that is NULL. */
const char *dir_next(DIR *dir);
