/*
 * swap.h - exchanges a set of files in the user's work tree, all of them or none.
 *
 *   <state>/applies/.tmp/<id>/        where git works: no sandbox sees it
 *       new/      the new files, as git wrote them
 *       index     the new index, if it changes
 *   <git dir>/carrel-apply/           exists only during an exchange
 *       lock      a second name of index.lock: git's own commands wait or fail meanwhile
 *       index     a copy of the new index, when it is complete
 *       journal   what is being exchanged; then `done`, when only the cleanup is left
 *       new/ old/ files before they are put in and after they were taken out (in a directory in
 *                 the work tree, named by the link `stage`, if the git dir is on another file
 *                 system: only a rename is atomic)
 *
 * A sandbox that has the work tree writable can exchange anything in the second directory and
 * in the tree for a link, at any moment. So no path leads there: everything is done below
 * descriptors, and no link is followed.
 *
 * Every file is exchanged by one rename, so it always has its old or its new content. The file
 * that was taken out is checked before it is removed: if it was changed at the last moment, it
 * is put back, and everything else with it. A crash leaves the journal; the next call restores
 * what was exchanged, or cleans up if the exchange was finished. Files that were edited after
 * the crash are left unchanged.
 */
#pragma once
#include "base/store.h"
#include "git/repo.h"
#include <sys/stat.h>

#define SWAP_DIR "carrel-apply"

struct swap {
    int git_dir; /* holds the flock: one exchange per work tree at a time */
    int top;     /* the work tree */
    int dir;     /* SWAP_DIR */
    int stage;   /* has new/ and old/ */
    struct store store;
    struct store_draft draft; /* where git works */
    const char *path;         /* of that, for other files of the caller */
    char *new;                /* in it: the caller puts files there, under their paths */
    char *index;              /* in it: the new index; optional, the caller creates it */
    bool is_begun;            /* there is a journal */
};
/* Undoes an exchange that is not finished. */
void swap_free(struct swap *swap);
DEFINE_AUTO(struct swap *, swap_free)

/*
 * First recovers from a crash. `state`: a directory of carrel's own. -EBUSY: another carrel, or
 * git itself, is at work here.
 */
int swap_open(const struct repo *repo, const char *state, struct swap **out,
        struct carrel_error *err);

enum swap_kind { SWAP_PUT, SWAP_REMOVE };
struct swap_item {
    const char *path;
    enum swap_kind kind;
    bool is_there;   /* the work tree has a file or link there ... */
    struct stat was; /* ... with this stat when the plan was made */
    bool keeps_mode; /* the new file gets `mode`, and the owner and group of the old one */
    mode_t mode;     /* permission bits */
};

/*
 * Exchanges them: `items` sorted by path. `commit`, or "" for none, is the HEAD after the
 * caller has finished: a recovery checks it. -ESTALE: *culprit was changed meanwhile or is
 * blocked. After any failure everything is restored.
 */
int swap_exchange(struct swap *swap, const struct swap_item *items, size_t n,
        const char *commit, size_t *culprit, struct carrel_error *err);

/*
 * Installs the new index, if there is one, and cleans up: from here on the exchange is final.
 */
int swap_finish(struct swap *swap, struct carrel_error *err);

/*
 * Returns 1 if something was recovered, 0 if there was nothing. -EBUSY: an exchange is in
 * progress.
 */
int swap_recover(const struct repo *repo, struct carrel_error *err);
