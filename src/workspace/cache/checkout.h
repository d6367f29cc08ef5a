/*
 * checkout.h - the cache of pristine trees: one immutable entry per repository and commit.
 *
 *   <state>/checkouts/<repo key>/<commit>/
 *       tree/      the files, and .git, a file that names PRIVATE_GIT_DIR     (a base), or
 *       layer/     the difference to the entry named in `below`               (a delta)
 *       git/       template of the private git dir, with an index that fits
 *       facts      "key value" lines, see struct checkout
 *       monitor    configuration of git for runs that have a monitor, see monitor.h
 *       gitlinks   paths of submodules, each ended by NUL; absent: none
 *       modules    "<name>\t<object directory>" lines; absent: none
 *       synced     everything reached the disk, see checkout_facts.h
 *
 * <state>/checkouts is a store, see base/store.h. Only `synced` is added to an entry later. The
 * modification time of an entry's directory is that of its last use.
 */
#pragma once
#include "git/repo.h"
#include <stdint.h>
#include <sys/types.h>

#define CHECKOUT_MAX_DEPTH 8

/* Where the object directories of submodules appear in the sandbox: in .../0, .../1, and so on.
 */
#define CHECKOUT_MODULE_OBJECTS "/run/carrel/modules-objects"

/* A held entry. */
struct checkout {
    char *path;   /* of the entry, absolute */
    char **lower; /* directories for the tree, topmost first, NULL at the end */
    char *git;    /* the template git dir */
    int lease;    /* keeps this entry (and those below) from being evicted */
    int *below_leases;
    size_t n_below;
    char *tree;         /* tree id of the commit */
    bool has_filters;   /* attributes or configuration name filter, ident, encoding, or
                           core.filemode/symlinks are not plain: only git may commit */
    bool has_line_ends; /* text/eol attributes or core.autocrlf: only git may commit a file with
                           CR */
    bool has_gitlinks;  /* submodules */
    bool has_monitor;   /* git in a run does well to ask a monitor, see monitor.h */
    char **gitlinks;    /* their paths, sorted, NULL at the end */
    char **module_objects; /* their object directories, to be bound read-only at
                              CHECKOUT_MODULE_OBJECTS/<n>; NULL at the end */
};
void checkout_free(struct checkout *checkout);
DEFINE_AUTO(struct checkout *, checkout_free)

/* Finds and holds an entry. -ENOENT: not in the cache. No process is started. */
int checkout_find(const char *state, const struct repo *repo, const char *commit,
        struct checkout **out, struct carrel_error *err);

/* A half-made entry. */
struct checkout_draft {
    char *path; /* temporary directory beside the entries, already with tree/ or layer/, git/ */
    char *commit;
    struct checkout *below; /* NULL: a base */
    uint64_t n_files;       /* of the commit */
    int lock; /* flock on <repo key>/<commit>.lock: one filler at a time, others wait for it */
    char *lock_path;
};
void checkout_draft_free(struct checkout_draft *draft); /* removes what was not published */
DEFINE_AUTO(struct checkout_draft *, checkout_draft_free)

struct checkout_owner {
    uid_t uid; /* as whom the run sees the tree's files: recorded in the index */
    gid_t gid;
};

/*
 * Checks the commit out: the price of `git checkout`, or of the difference to an entry that is
 * there. Runs the user's smudge filters on committed content, as any checkout does; no hooks.
 * The index in git/ is as the run will see it: owner ids replaced by `owner`, and dated such
 * that a same-size edit in the first second is seen. It is newer than every file by a full
 * second, so git reads none of them again; in a small tree a few may be of its own second,
 * which git then reads once (see fill.c). `progress` (may be NULL) is called with files done
 * and their number once a second passed. Returns -EEXIST when another process published the
 * entry meanwhile: find it.
 */
int checkout_fill(const char *state, const struct repo *repo, const char *commit,
        struct checkout_owner owner,
        void (*progress)(uint64_t done, uint64_t total, void *context), void *context,
        struct checkout_draft **out, struct carrel_error *err);

/* Puts the finished draft into place and holds it. `index` >= 0: a better index file (with an
 * untracked cache, recorded in a sandbox) that replaces the draft's; it is checked by git
 * first. */
int checkout_publish(const char *state, const struct repo *repo, struct checkout_draft *draft,
        int index, struct checkout **out, struct carrel_error *err);

/* Removes what crashes left, and entries that are not held and that no workspace needs: those
 * not used for `max_age_s`, and the least recently used ones above `max_bytes`. Returns how
 * many. 0 and UINT64_MAX: no entries. */
int checkout_sweep(
        const char *state, uint64_t max_age_s, uint64_t max_bytes, struct carrel_error *err);
