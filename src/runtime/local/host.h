/*
 * host.h - facts about this machine that the plan needs, read once before anything is created.
 *
 * Every lookup on the host's file system happens here, in the parent, so that the plan is a
 * pure function and the child only carries it out.
 */
#pragma once
#include "base/auto.h"
#include "base/named.h"
#include "base/subids.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct carrel_error;
struct sandbox_spec;

/* One name that the sandbox's root shows as it is on the host (or in --root). */
struct host_entry {
    char *path; /* relative to the root: "usr", "etc/ssl" */
    enum { ENTRY_ABSENT, ENTRY_DIR, ENTRY_FILE, ENTRY_LINK } kind;
    char *link; /* the target of a link */
};

struct host {
    uid_t uid;
    gid_t gid;
    bool is_root;    /* may map ranges of ids and mount: root with its capabilities */
    bool has_subids; /* requested, and available */
    struct subids subids;
    bool is_nested; /* in a user namespace without all ids: uid 0 is not the host's root */
    int landlock;   /* ABI version; 0: not available */
    struct host_entry *entries;
    size_t n_entries;
    struct named_id root; /* another root that the entries are of */
    uint64_t proc_masks;  /* which rows of the mask table exist here */
    char *resolv_conf;    /* text for /etc/resolv.conf */
    char *proc_stat;      /* text for /proc/stat: this many processors, and no counts */
};

int host_read(const struct sandbox_spec *spec, struct host **out, struct carrel_error *err);
void host_free(struct host *host);
DEFINE_AUTO(struct host *, host_free)

/* Whether this process may map ranges of ids and mount for others. */
bool host_is_privileged(void);
bool host_has_ranges(void); /* the same, and we may map all ids of the host */

/* Whether the kernel `release` ("6.1.0-13-amd64") has everything that we depend on. */
bool host_is_new_enough(const char *release);

/* Landlock's ABI version, 0 if the kernel has none or it is disabled; negative errno. */
int host_landlock_abi(void);

/* The masked parts of /proc: the table is shared with the plan. */
struct proc_mask {
    char name[16];
    enum {
        MASK_FILE,
        MASK_DIR,
        MASK_READ_ONLY,
        MASK_CLOSED, /* by a file that cannot be opened */
        MASK_STAT,   /* by the text of /proc/stat */
    } kind;
};
extern const struct proc_mask proc_masks[];
extern const size_t n_proc_masks;
