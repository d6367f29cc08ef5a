/*
 * swap.h - a set of files in the user's work tree is exchanged, all of them or none.
 *
 *   <git dir>/carrel-apply/           there only while it happens
 *       lock      a second name of index.lock: git's own commands wait or refuse meanwhile
 *       index     the index to come, if it is to change
 *       journal   what is being exchanged; then `done`, when only cleaning up is left
 *       new/ old/ files before they go in and after they came out (in a directory in
 *                 the work tree, named by the link `stage`, when the git dir is on another file
 *                 system: only a rename is atomic)
 *
 * Every file is exchanged by one rename, so it always has its old or its new content, and what
 * comes out is looked at before it is thrown away: a file that somebody changed at the last
 * moment goes back, and everything else with it. A crash leaves the journal; whoever comes next
 * puts back what was exchanged, or cleans up if it was finished. Files that were edited after
 * the crash are left as they are.
 */
#pragma once
#include "git/repo.h"
#include <sys/stat.h>

#define SWAP_DIR "carrel-apply"

struct swap {
    int git_dir;   /* holds the flock: one exchange per work tree at a time */
    int top;       /* the work tree */
    int dir;       /* SWAP_DIR */
    int stage;     /* has new/ and old/ */
    char *path;    /* of dir */
    char *new;     /* path of new/: the caller puts files there, under their own paths */
    char *index;   /* path of the index to come: the caller makes it, or not */
    bool is_begun; /* there is a journal */
};
/* What is not finished is undone. */
void swap_free(struct swap *swap);
DEFINE_AUTO(struct swap *, swap_free)

/* First recovers what a crash left. -EBUSY: another carrel, or git itself, is at work here. */
int swap_open(const struct repo *repo, struct swap **out, struct carrel_error *err);

enum swap_kind { SWAP_PUT, SWAP_REMOVE };
struct swap_item {
    const char *path;
    enum swap_kind kind;
    bool is_there;   /* the work tree has a file or link there ... */
    struct stat was; /* ... that was this one when it was decided upon */
    bool keeps_mode; /* the new file gets `mode`, and the owner and group of the old one */
    mode_t mode;     /* permission bits */
};

/*
 * Exchanges them: `items` sorted by path. `commit`, or "" for none, is what HEAD will be when
 * the caller is through: that tells a recovery whether it came so far. -ESTALE: *culprit was
 * changed meanwhile or something is in its way. After any failure everything is as before.
 */
int swap_exchange(struct swap *swap, const struct swap_item *items, size_t n,
        const char *commit, size_t *culprit, struct carrel_error *err);

/* Puts the index into place if one was made, and cleans up: from here on it has happened. */
int swap_finish(struct swap *swap, struct carrel_error *err);

/* Returns 1 when something was put right, 0 when there was nothing. -EBUSY: it is going on. */
int swap_recover(const struct repo *repo, struct carrel_error *err);
