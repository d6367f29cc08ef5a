/*
 * fill.h - making the content of a cache entry: a whole tree, or a layer over another entry.
 *
 * The caller has claimed the entry and made an empty draft.
 */
#pragma once
#include "base/buf.h"
#include "git/git.h"
#include "workspace/cache/checkout.h"

struct carrel_error;

struct fill {
    const struct repo *repo;
    const struct store *store;
    const char *commit;
    struct checkout_owner owner;
    const char *path; /* of the draft */
    int dir;          /* the same, open */
    void (*progress)(uint64_t done, uint64_t total, void *context);
    void *context;
    struct conversion settings; /* of the user, now */
    char **no_filters; /* of a run's commit: settings that turn each filter off; NULL: none */
    struct checkout_facts facts; /* becomes complete */
    struct buf indexes;          /* every index file in the draft, each ended by NUL */
    struct buf module_objects;   /* becomes the file `modules` */
    size_t n_module_objects;
};

/* tree/ with all files of the commit, and git/. */
int fill_base(struct fill *fill, struct carrel_error *err);

/*
 * layer/ and git/ over an entry that differs little from the commit. Returns 1 and the held
 * entry in *below, or 0 when there is none that would do.
 */
int fill_layer(struct fill *fill, const char *state, struct checkout **below,
        struct carrel_error *err);

/*
 * git as the user runs it, but for the index it writes: plain, whole, with every field that the
 * run's own git will compare.
 */
int fill_git(const struct git *git, const char *const *args, struct git_io *io,
        struct carrel_error *err);

/* The user's git on the repository, without the filters that must not run on this commit. */
struct git fill_user_git(const struct fill *fill);

/* Checks the commit out: all its files into `tree`, with `index` for them. Both are absolute.
 */
int fill_check_out(const struct fill *fill, const struct repo *repo, const char *commit,
        const char *tree, const char *index, struct carrel_error *err);

/* Makes the directory `name` in the draft and in it a template git dir. */
int fill_template(
        struct fill *fill, const struct repo *repo, const char *name, struct carrel_error *err);

/*
 * The index at `name` in the draft gets the run's owner. Adds to facts.files, and to
 * facts.bytes what files not older than `since_s` take.
 */
int fill_own_index(
        struct fill *fill, const char *name, int64_t since_s, struct carrel_error *err);

/* Last of all: makes every index newer than the files. */
int fill_settle(struct fill *fill, struct carrel_error *err);

/* Adds "<oid> <path>" and a NUL if `item`, as ls-tree prints it, is a submodule. */
void fill_note_gitlink(const char *item, struct buf *gitlinks);

/* Checks out the submodules in `gitlinks`, which is cut up for it, as far as they are there. */
int fill_modules(struct fill *fill, struct buf *gitlinks, struct carrel_error *err);
