/* tree.h - removes directory trees with untrusted content. */
#pragma once
#include <stdbool.h>

struct carrel_error;

/*
 * Removes `name`, one component, from the directory `dir` (AT_FDCWD works), and all below it if
 * it is a directory. A missing name is not an error.
 *
 * An attacker may have chosen depth, names, modes and links of the tree. So no link is
 * followed, no path is joined, the number of descriptors and the stack do not grow with the
 * depth, unreadable directories are made readable first, and attributes that forbid removal
 * (immutable, append-only) are cleared where we may. A mount found in the tree is never
 * entered: its content is not ours. Nothing may still be writing to the tree, but other
 * processes may be removing it at the same time.
 *
 * Everything that can be removed is removed; the first failure is returned. Allocates nothing,
 * so it is safe between clone and exec, unless an entry belongs to another user: then an
 * ordinary user retries with the rights of its subordinate ids (subids.h).
 */
int tree_remove(int dir, const char *name, struct carrel_error *err);

/* Whether `name` is a directory, can be read, and has nothing in it. */
bool tree_is_empty(int dir, const char *name);
