/*
 * host.h - what the plan needs to know of this machine, read once before anything is made.
 *
 * Everything that must be looked up on the host's file system is looked up here, in the parent,
 * so that the plan is a pure function and the child only carries it out.
 */
#pragma once
#include "base/auto.h"
#include "base/subids.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct carrel_error;
struct sandbox_spec;

/* One name that the sandbox's root shows as the host (or --root) has it. */
struct host_entry {
    char *path; /* relative to the root: "usr", "etc/ssl" */
    enum { ENTRY_ABSENT, ENTRY_DIR, ENTRY_FILE, ENTRY_LINK } kind;
    char *link; /* where a link points */
};

struct host {
    uid_t uid;
    gid_t gid;
    bool is_root;    /* may map ranges of ids and make mounts: root with its capabilities */
    bool has_subids; /* it was asked for them, and there are some */
    struct subids subids;
    bool is_nested; /* in a user namespace that has not all ids: uid 0 is not the host's root */
    int landlock;   /* ABI version; 0: not there */
    struct host_entry *entries;
    size_t n_entries;
    uint64_t proc_masks; /* which rows of the mask table exist here */
    char *resolv_conf;   /* text for /etc/resolv.conf */
};

int host_read(const struct sandbox_spec *spec, struct host **out, struct carrel_error *err);
void host_free(struct host *host);
DEFINE_AUTO(struct host *, host_free)

/* True when this process may map ranges of ids and make mounts for others. */
bool host_is_privileged(void);
bool host_has_ranges(void); /* that, and all ids of the host are ours to map */

/* Does the kernel that calls itself `release` ("6.1.0-13-amd64") have all that we build on? */
bool host_is_new_enough(const char *release);

/* Landlock's ABI version, 0 when the kernel has none or it is switched off; negative errno. */
int host_landlock_abi(void);

/* What of /proc is hidden: the table, shared with the plan. */
struct proc_mask {
    char name[16];
    enum { MASK_FILE, MASK_DIR, MASK_READ_ONLY } kind;
};
extern const struct proc_mask proc_masks[];
extern const size_t n_proc_masks;
