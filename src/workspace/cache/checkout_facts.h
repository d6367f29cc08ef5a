/*
 * checkout_facts.h - what is recorded beside a cached tree: "key value" lines in `facts`.
 *
 * Also the few things that all parts of the cache share: names of files in an entry, and paths.
 */
#pragma once
#include "base/kernel.h"
#include "git/conversion.h"
#include "workspace/cache/checkout.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct carrel_error;

struct checkout_facts {
    char tree[OID_MAX];
    char below[OID_MAX];                    /* commit of the entry below; empty: a base */
    char conversion[CONVERSION_DIGEST_MAX]; /* of the settings that the tree was made under */
    char boot[KERNEL_BOOT_ID_MAX]; /* when it was made, see checkout_is_whole(); empty: unknown */
    uint64_t depth;         /* layers over the base */
    uint64_t files;         /* in the whole tree */
    uint64_t bytes;         /* on disk, of this entry alone */
    uint64_t uid, gid;      /* in the index */
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

/* <state>/checkouts/<key>, or the file `name` in it. */
char *checkout_place(const char *state, const struct repo *repo, const char *name);

/*
 * The entry `commit` in `place`, open and under a shared lease. -ENOENT: none, or one that is
 * being evicted, or not whole.
 */
struct checkout_hold {
    int dir;
    int lease;
    struct checkout_facts facts;
};
int checkout_hold(const char *place, const char *commit, struct checkout_hold *out);
void checkout_hold_finish(struct checkout_hold hold);
DEFINE_AUTO(struct checkout_hold, checkout_hold_finish)

/* Moves the entry `name` of `place` to a trash name, written to `trash`. The caller holds its
 * exclusive lease. */
int checkout_trash(int place, const char *name, char *trash, size_t size);

#define CHECKOUT_DRAFT ".draft-" /* then commit, process, time */
#define CHECKOUT_TRASH ".trash-"
#define CHECKOUT_LOCK ".lock" /* after the commit */
