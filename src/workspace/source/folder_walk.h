/* folder_walk.h - what git does not say of a folder: its empty directories, and repositories.
 */
#pragma once
#include "base/buf.h"

struct carrel_error;

#define FOLDER_WALK_MAX_BYTES ((size_t)64 << 20)

/* Adds the paths of directories without any file, each ended by a NUL. -EEXIST: something named
 * .git is in there. Links are not followed. */
int folder_walk(const char *dir, struct buf *empty, struct carrel_error *err);

/* Makes the directories that the file `list` names, below `tree`. No list is an empty list. */
int folder_walk_make(const char *list, int tree, struct carrel_error *err);
