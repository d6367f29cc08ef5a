/*
 * plan.h - the steps that create a sandbox, as data.
 *
 * plan_make() turns a spec and facts about the host into a list of steps without a single
 * system call, so every decision can be tested without a privilege. apply.c carries the list
 * out in the child, in order, and decides nothing.
 */
#pragma once
#include "base/auto.h"
#include "base/named.h"
#include "base/subids.h"
#include "runtime/local/disks.h"
#include "runtime/spawn.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

struct carrel_error;
struct host;
struct sandbox_spec;

/* Paths are relative to the new root, without a leading slash. */
enum step_kind {
    STEP_DIR,       /* a directory of the skeleton */
    STEP_LINK,      /* a symbolic link to `source` */
    STEP_FILE,      /* a file that holds `source` */
    STEP_COVER,     /* the same, mounted over a file of another root, if that exists */
    STEP_SPACE,     /* a private writable directory, of the program's user */
    STEP_KEPT,      /* the same on disk: the directory `source` of the space, mounted there */
    STEP_POINT,     /* of a root on disk: a directory to mount on, not a link */
    STEP_ENSURE,    /* of a root on disk: a directory of the program, or a link to one */
    STEP_DEV,       /* of a root on disk: mounts the skeleton's /dev over its own */
    STEP_BIND,      /* `source` of the host, read-only */
    STEP_DEVICE,    /* the host's device node `source` */
    STEP_DEVPTS,    /* own terminals */
    STEP_PROC,      /* /proc of the new pid namespace */
    STEP_MASK,      /* hides a file of /proc */
    STEP_MASK_DIR,  /* hides a directory of /proc */
    STEP_READ_ONLY, /* makes part of /proc read-only */
    STEP_MOUNT,     /* the caller's mount number `index`: no component may be a link */
    STEP_OVERLAY,   /* the same for a copy-on-write tree */
};

/* Whether it is the same in every sandbox of the same plan. See skeleton.h. */
static inline bool step_is_skeleton(enum step_kind kind)
{
    return kind == STEP_DIR || kind == STEP_LINK || kind == STEP_FILE || kind == STEP_DEVICE;
}

struct step {
    enum step_kind kind;
    const char *path;
    const char *source;
    mode_t mode;
    size_t index;
};

struct plan_source {
    char *path;
    int fd;             /* open already; -1: by its path */
    struct named_id id; /* of what was opened: the child, which looks the path up, compares */
    struct storage storage; /* where it lies */
    bool is_writable;
};

struct plan_mount {
    char *target; /* relative to the new root */
    bool is_writable;
    size_t source; /* index of what is mounted; of an overlay's topmost lower directory */
    bool is_overlay;
    bool is_in_memory; /* its upper and work directories are in the private space */
    size_t n_lower;    /* of an overlay; the source after the lower ones holds ... */
    char *upper;       /* ... these two */
    char *work;
};

#define PLAN_MAX_RLIMITS 10

struct plan {
    struct step *steps;
    size_t n_steps;
    struct plan_mount *mounts; /* in mount order */
    size_t n_mounts;
    struct plan_source *sources; /* directories and files of the host behind the mounts */
    size_t n_sources;
    /* What the disk is used for: nothing, the private directories, or the root itself. */
    enum { DISK_IS_UNUSED, DISK_HAS_PLACES, DISK_IS_ROOT } disk_use;
    struct plan_mount disk; /* that overlay */
    const char *root;       /* another root that STEP_BIND is about; NULL: the host's own ... */
    struct named_id root_id; /* ... and which directory it is */
    const char **writable;   /* absolute paths that programs may write to; NULL-terminated */

    /* Ids as the sandbox sees them. */
    uid_t init_uid;
    gid_t init_gid;
    uid_t uid;
    gid_t gid;
    uid_t maker_uid; /* creates the root, and can access all that is mounted in it */
    gid_t maker_gid;
    bool has_range;  /* a range of ids is mapped (else one: the caller's own) */
    bool has_subids; /* the range is the caller's subordinate ids, plus its own */
    struct subids subids;
    bool is_init_apart; /* init has another uid than the programs */

    bool shares_skeleton; /* only the steps create anything in the root */
    bool stays; /* programs are started later, by a process that only owns the sandbox */
    bool has_netns;
    int landlock; /* ABI to use, 0: none */
    const char *hostname;
    char space_bytes[24]; /* mount options of the private writable space */
    char space_inodes[24];
    struct spawn_rlimit rlimits[PLAN_MAX_RLIMITS];
    size_t n_rlimits;

    const char *user_name;   /* a constant */
    struct plan_text *texts; /* everything the pointers above point to */
};

/* Whether the caller is root: no id inside is its own, and it creates the mounts itself. */
static inline bool plan_is_of_root(const struct plan *plan)
{
    return plan->has_range && !plan->has_subids;
}

#define PLAN_MAX_LOWER 80U /* directories of one overlay; see overlay.c */
#define PLAN_RANGE 65536U  /* ids in a range */
#define PLAN_USER 1000U    /* the programs' user if ids come from a range */
#define PLAN_HOME "/home/agent"
#define PLAN_WORKSPACE "/workspace"

/*
 * Makes the plan. Refuses (-EINVAL) contradictions: a relative or reserved mount target, two
 * mounts on one target, an id that cannot be mapped.
 */
int plan_make(const struct sandbox_spec *spec, const struct host *host, struct plan **out,
        struct carrel_error *err);
void plan_free(struct plan *plan);
DEFINE_AUTO(struct plan *, plan_free)

/*
 * The programs' user: as requested, else an ordinary one of the range, else (*uid, *gid)
 * unchanged.
 */
void plan_identity(const struct sandbox_spec *spec, bool has_range, uid_t *uid, gid_t *gid);

/* The part that starting programs needs, without its lists. */
struct plan plan_for_programs(const struct plan *plan);

/* Init has a copy of the plan: keeps only what starting programs needs. */
void plan_forget_steps(struct plan *plan);

/* Replaces source `i` by another path of the same file. */
int plan_set_source(struct plan *plan, size_t i, const char *source, struct carrel_error *err);

/* Adds one resource limit for every program. */
void plan_add_rlimit(struct plan *plan, int resource, uint64_t value);
