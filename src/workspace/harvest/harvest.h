/*
 * harvest.h - turns the work of a run into checked git objects, outside of the repository.
 *
 * Objects are first written to a quarantine: an object directory of the workspace, with the
 * repository's objects as alternate. There they are hashed and checked (fsck, connectivity).
 * Only harvest_publish() adds them to the repository.
 */
#pragma once
#include "git/repo.h"
#include "workspace/harvest/upper.h"
#include <stdint.h>

struct harvest_limits {
    uint64_t max_pack_bytes;
    uint64_t max_commits;
    uint64_t max_paths;
    uint64_t max_path_bytes;   /* of all of them together */
    uint64_t max_memory_bytes; /* of each git process: a small pack can need much */
    unsigned timeout_ms;       /* for each git process */
    bool allow_gitlinks;       /* new submodule entries are refused otherwise */
};
#define HARVEST_LIMITS_INIT                                                                    \
    {                                                                                          \
        .max_pack_bytes = UINT64_C(4) << 30, .max_commits = 100000, .max_paths = 1000000,      \
        .max_path_bytes = PATHS_MAX_BYTES, .max_memory_bytes = UINT64_C(2) << 30,              \
        .timeout_ms = 300000                                                                   \
    }

/* The message of the commit with the run's uncommitted changes. */
#define HARVEST_MESSAGE "Uncommitted work of a carrel run"

/* Creates the quarantine directory `dir`, absolute; empties an existing one. */
int harvest_open(const char *dir, struct carrel_error *err);

/*
 * Reads a pack stream from `pack_fd` (written by the run's own git: untrusted) whose tip is
 * claimed to be `tip`, over `base`. Every object is hashed and checked; the tip must be a
 * commit and everything it reaches must exist (in quarantine or repository). -EBADMSG with
 * git's message for a bad stream, -EFBIG over a limit.
 */
int harvest_take_pack(const struct repo *repo, const char *dir, int pack_fd, const char *tip,
        const char *base, const struct harvest_limits *limits, struct carrel_error *err);

struct harvest_author {
    const char *name; /* of carrel as committer, and as author if there is no other */
    const char *email;
    int64_t when_s; /* seconds since the epoch */
};

/*
 * Creates the commit "base_tree plus changes", child of `parent`, in the quarantine, in time
 * proportional to the changes (git fast-import). No filter sees the content. If its tree equals
 * the parent's, nothing is created and `commit` is `parent`. Paths that git or a file system on
 * another machine would treat as .git (any case, git~1, ignorable characters, trailing dots or
 * spaces), "." and "..", are refused with -EBADMSG. Content is read below `upper` without
 * following links; a file that changes size while it is read is -ESTALE.
 */
int harvest_commit_changes(const struct repo *repo, const char *dir, int upper,
        const struct changes *changes, const char *base_tree, const char *parent,
        const char *message, const struct harvest_author *author,
        const struct harvest_limits *limits, char commit[static OID_MAX],
        struct carrel_error *err);

/* The difference between base and tip, for people and for policy. */
struct harvest_file {
    char *path;
    char status; /* A M D T */
    bool is_binary;
    uint64_t added, removed; /* lines */
    const char *sensitive;   /* NULL, or why it would execute on the host (static text) */
};
struct harvest_summary {
    struct harvest_file *files;
    size_t n_files;
    uint64_t added, removed;
    uint64_t n_commits; /* base..tip, including one that harvest_commit_changes() made */
    bool is_rewritten;  /* tip does not descend from base */
    size_t n_sensitive;
};
void harvest_summary_finish(struct harvest_summary *summary);
int harvest_summarize(const struct repo *repo, const char *dir, const char *base,
        const char *tip, const struct harvest_limits *limits, struct harvest_summary *out,
        struct carrel_error *err);

/*
 * Creates one pack in the quarantine with everything that `tip` reaches and `base` does not,
 * including objects of the repository, and removes all else there. -EBADMSG: an object is
 * missing: weeks may have passed since the harvest, and it may depend on objects that no branch
 * of the user reached and that were garbage-collected since.
 */
int harvest_join(const struct repo *repo, const char *dir, const char *base, const char *tip,
        struct carrel_error *err);

/*
 * Joins the quarantine's objects, puts them into the repository, on the disk, and then moves
 * `branch` (full ref name) from `old` to `tip`; `old` empty: makes it, -EEXIST when it is
 * there. The quarantine keeps all of `snapshot`, which is `tip` or follows it. Killed anywhere
 * it leaves at most objects that nothing refers to, and another call finishes. On failure the
 * branch is where it was. The quarantine is complete, always.
 */
int harvest_publish(const struct repo *repo, const char *dir, const char *branch,
        const char *base, const char *tip, const char *snapshot, const char *old,
        const char *message, struct carrel_error *err);

/*
 * Removes what a killed publication of `branch` may have left: .keep files, which keep packs
 * for ever.
 */
void harvest_unkeep(const struct repo *repo, const char *branch);

/* A scrubbed git that reads repository and quarantine and writes to the quarantine `dir`. */
struct git harvest_git(const struct repo *repo, const char *dir);
