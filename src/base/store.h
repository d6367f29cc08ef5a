/*
 * store.h - a directory whose entries appear whole and disappear whole.
 *
 *   TOP/NAME        an entry: a directory. NAME is one component, or GROUP/NAME
 *   TOP/NAME/disk   where a file system of its own is mounted, if it needs one; from a draft
 *                   disk.new on
 *   TOP/.tmp/ID     a draft, not an entry yet; or a retired entry, being removed
 *   TOP/.claims     byte locks, see store_claim()
 *
 * The lock of an entry or draft is a flock on its directory: shared by each process that uses
 * it, exclusive for the process that retires it. The lock ends with the last descriptor of its
 * holder, however that process ends. A process that has locked a directory compares it with
 * what has the name now: a directory that was renamed meanwhile counts as not found. So no lock
 * on the whole store is needed, and a draft that is not locked yet is safe: a sweep that takes
 * it first makes store_draft() try another name.
 *
 * store_publish() takes a name by one rename out of .tmp, store_retire() and store_remove()
 * give it back by one rename into .tmp. What a crash leaves:
 *
 *   before store_publish()          an unlocked directory in .tmp     store_sweep() removes it
 *   after it                        a complete, unlocked entry        kept, or removed by a
 *                                                                     sweep if nothing needs it
 *   in store_retire(), store_remove()  an unlocked directory in .tmp  store_sweep() removes it
 *   with a claim                    nothing: the kernel drops the lock
 *
 * An entry that is not in use may be needed all the same: by a record elsewhere that names it.
 * A record is written while its writer holds the entry. So a sweep locks an entry first and
 * then reads the records: a name that is written later finds the entry gone.
 *
 * Nothing here is synced. TOP belongs to the caller alone; sandboxes see directories inside of
 * entries, never an entry itself, so no program can hold its lock.
 */
#pragma once
#include "base/auto.h"
#include "base/id.h"
#include <stdbool.h>
#include <stddef.h>

struct carrel_error;

struct store {
    char *path;
    int top;
    int tmp;
};
#define STORE_INIT ((struct store){ .top = -1, .tmp = -1 })

/* The first is -ENOENT where there is none, the second makes it and what is missing above. */
int store_open(const char *path, struct store *out, struct carrel_error *err);
int store_make(const char *path, struct store *out, struct carrel_error *err);
void store_finish(struct store store);
DEFINE_AUTO(struct store, store_finish)

/* --- making --- */

struct store_draft {
    char *path; /* NULL: it is published, or there is none */
    char id[ID_SIZE];
    int dir; /* holds the lock, shared; after store_publish() that of the entry */
};
#define STORE_DRAFT_INIT ((struct store_draft){ .dir = -1 })

int store_draft(const struct store *store, struct store_draft *out, struct carrel_error *err);

/*
 * Gives the draft, which must not be empty, the name; draft->dir then holds the entry. -EEXIST:
 * there is one, and the draft stays a draft.
 */
int store_publish(const struct store *store, struct store_draft *draft, const char *name,
        struct carrel_error *err);

/* Removes a draft that was not published, and closes draft->dir. */
void store_drop(const struct store *store, struct store_draft *draft);

/*
 * Waits until no other process has claimed `name`; two makers of one entry need not make it
 * twice. Closing the descriptor ends the claim. The name need not be that of an entry.
 */
int store_claim(const struct store *store, const char *name, struct carrel_error *err);

/* --- using --- */

/* Holds the entry: its directory, locked. Negative errno; -ENOENT: there is none. */
int store_hold(const struct store *store, const char *name);

/* Whether `name` below `parent` is the directory that is open as `dir`. */
bool store_is_named(int dir, int parent, const char *name);

/* Holds the whole store, for a caller with an order of its own: flock() on .tmp. Returns a
 * descriptor; -EWOULDBLOCK with LOCK_NB. */
int store_lock(const struct store *store, int operation, struct carrel_error *err);

/* --- removing --- */

/*
 * Unmounts DIR/disk, as often as something is mounted there, and removes it and a draft of its
 * image, for a process that holds the entry `dir`: a process that was killed leaves them.
 * Everything that removes an entry does this first.
 */
#define STORE_DISK "disk"
#define STORE_DISK_DRAFT "disk.new"
void store_unmount(int dir);
bool store_has_disk(int dir); /* whether that has something to do */

/*
 * Removes an entry that the caller holds by `dir`, which stays open. -EBUSY: another process
 * holds it, too; -ENOENT: it is gone.
 */
int store_remove(
        const struct store *store, const char *name, int dir, struct carrel_error *err);

/* Only the rename: the entry is `id` in .tmp then, for a caller with more to undo. */
int store_unname(const struct store *store, const char *name, int dir, char id[static ID_SIZE],
        struct carrel_error *err);

/* A set of names. */
struct store_names {
    char **list;
    size_t n, room;
    bool has_all; /* every name there is, for a namer that cannot tell */
};
int store_names_add(struct store_names *names, const char *name); /* -ENOMEM */
void store_names_sort(struct store_names *names);
bool store_names_has(const struct store_names *names, const char *name); /* sorted */
void store_names_finish(struct store_names names);
DEFINE_AUTO(struct store_names, store_names_finish)

/* All entries: of the store, or, in a store with groups, "GROUP/NAME" of each. Sorted. */
enum store_depth { STORE_PLAIN, STORE_GROUPS };
int store_list(const struct store *store, enum store_depth depth, struct store_names *out,
        struct carrel_error *err);

/* Adds the names that are needed. When it fails nothing more is removed. */
typedef int store_namer(struct store_names *needed, void *context, struct carrel_error *err);

/*
 * Removes those of `names` that no process holds and, asked while they are locked, `namer` does
 * not name. Returns how many.
 */
int store_retire(const struct store *store, const struct store_names *names, store_namer *namer,
        void *context, struct carrel_error *err);

/* Removes what crashes left in .tmp. Returns how many; what resists stays for the next one. */
int store_sweep(const struct store *store, struct carrel_error *err);

/* The same; each directory is removed only if `finish`, called while it is locked, is 0. */
typedef int store_finisher(int dir, void *context);
int store_sweep_with(const struct store *store, store_finisher *finish, void *context,
        struct carrel_error *err);
