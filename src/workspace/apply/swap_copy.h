/* swap_copy.h - files on their way into a tree in which links may appear at any moment. */
#pragma once

/* Opens the directory `name` in the directory `stage`, not through a link. Negative errno. */
int swap_part(int stage, const char *name);

/* Copies the file or link `name` from one directory to another, where it must not exist. */
int swap_copy(int from, int to, const char *name);

/* The same for a path below both; missing directories are created. What is there is replaced:
 * an earlier try may have left it. */
int swap_copy_path(int from, int to, const char *path);
