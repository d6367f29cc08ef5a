/*
 * folder_walk.h - finds what git does not record of a folder: empty directories, and
 * repositories.
 */
#pragma once
#include "base/buf.h"

struct carrel_error;

#define FOLDER_WALK_MAX_BYTES ((size_t)64 << 20)

/*
 * Adds the paths of directories without any file, each terminated by a NUL. -EEXIST: there is
 * an entry named .git. Links are not followed.
 */
int folder_walk(int dir, struct buf *empty, struct carrel_error *err);

/*
 * Creates the directories that the file `list` names, below `tree`. A missing file is an empty
 * list.
 */
int folder_walk_make(const char *list, int tree, struct carrel_error *err);
