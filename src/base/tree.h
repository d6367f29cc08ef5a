/* tree.h - directory trees that somebody else may have filled. */
#pragma once

struct carrel_error;

/*
 * Removes `name`, one component, from the directory `dir` (AT_FDCWD works), and all below it if
 * it is a directory. A name that is not there is fine.
 *
 * Whoever filled the tree chose its depth, its names, its modes and its links. So no link is
 * followed, no path is put together, the number of descriptors and the stack do not grow with
 * the depth, directories that forbid reading are opened up first, and attributes that forbid
 * removal (immutable, append-only) are taken off where we may. A mount found in the tree
 * is never entered: what is mounted there belongs to somebody else. Nothing may still be
 * writing to the tree, but others may be removing it, too.
 *
 * What can be removed is removed, even when something else cannot; the first failure is
 * returned. Allocates nothing, and so is safe between clone and exec, unless something belongs
 * to others: an ordinary user tries again with the rights of its subordinate ids (subids.h).
 */
int tree_remove(int dir, const char *name, struct carrel_error *err);
