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
#include "base/kernel.h"
#include "base/store.h"
#include "git/conversion.h"
#include "git/repo.h"
#include <stdbool.h>
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
    int held[CHECKOUT_MAX_DEPTH + 1]; /* its directory and those of the n_below entries below */
    size_t n_held, n_below;
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
    struct store store;
    struct store_draft entry; /* with tree/ or layer/, git/ */
    int claim;                /* one process at a time makes an entry, others wait for it */
    char *name;               /* of the entry */
    const char *commit;       /* the same without the key of the repository */
    struct checkout *below;   /* NULL: a base */
    uint64_t n_files;         /* of the commit */
};
void checkout_draft_free(struct checkout_draft *draft); /* removes what was not published */
DEFINE_AUTO(struct checkout_draft *, checkout_draft_free)

struct checkout_owner {
    uid_t uid; /* as whom the run sees the tree's files: recorded in the index */
    gid_t gid;
    bool is_of_run; /* the commit came from a run: no filter of the user's is given it */
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

/*
 * * checkout_facts.h - what is recorded beside a cached tree: "key value" lines in `facts`.
 *
 * Also the few things that all parts of the cache share: names of files in an entry, and paths.
 */

struct carrel_error;

struct checkout_facts {
    char tree[OID_MAX];
    char below[OID_MAX];                    /* commit of the entry below; empty: a base */
    char conversion[CONVERSION_DIGEST_MAX]; /* of the settings that the tree was made under */
    char boot[KERNEL_BOOT_ID_MAX]; /* when it was made, see checkout_is_whole(); empty: unknown
                                    */
    uint64_t depth;                /* layers over the base */
    uint64_t files;                /* in the whole tree */
    uint64_t bytes;                /* on disk, of this entry alone */
    uint64_t uid, gid;             /* in the index */
    uint64_t has_filters, has_line_ends, has_gitlinks;
    uint64_t has_monitor; /* its index is such that git may ask a monitor, see monitor.h */
};

/* Unknown keys are passed over. -EBADMSG: not a whole record. */
int checkout_facts_read(int entry, struct checkout_facts *out);
int checkout_facts_write(
        int entry, const struct checkout_facts *facts, struct carrel_error *err);

/*
 * Whether everything in the entry reached the disk. Making an entry does not wait for that, so
 * one that a machine lost its power over may have empty files. The file `synced` says that it
 * was waited for; without it an entry counts only until the next boot.
 */
bool checkout_is_whole(int entry, const struct checkout_facts *facts);

/* printf into heap memory; NULL: no memory. */
char *checkout_format(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* "<key of the repository>/<commit>": the name of an entry. NULL: no memory. */
char *checkout_name(const struct repo *repo, const char *commit);

/* What the entries of a repository have in common: it, and which of its filters are left off.
 */
char *checkout_group(const struct repo *repo);

/*
 * Holds the entry and reads its facts. Returns its directory; -ENOENT: there is none, or it is
 * not whole.
 */
int checkout_hold(const struct store *store, const char *name, struct checkout_facts *facts);
