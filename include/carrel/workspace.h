/*
 * workspace.h - what runs changed in their git worktrees: review it, take it over, remove it.
 *
 * carrel_run() and carrel_sandbox_create() make a workspace when their options have one, and
 * continue in one (`resume`). When the run has ended, its work is in the workspace until it is
 * put on the run's branch, applied to the user's files or discarded.
 */
#pragma once
#include <carrel/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum carrel_outcome_action {
    CARREL_ACTION_DEFAULT, /* what the policy says; else CARREL_KEEP */
    CARREL_KEEP,           /* the workspace stays as the run left it */
    CARREL_COMMIT,         /* its work becomes commits on the run's branch */
    CARREL_APPLY,          /* that, and its changes go into the user's checked-out files */
    CARREL_DISCARD,        /* the workspace and its branch are removed */
};

enum carrel_history {
    CARREL_HISTORY_DEFAULT, /* what the policy says; else all of it */
    CARREL_HISTORY_FULL,
    CARREL_HISTORY_CUT, /* the run sees the base commit alone */
};

enum carrel_tree {
    CARREL_TREE_AUTO,    /* what the policy says; else the first of these that works here */
    CARREL_TREE_OVERLAY, /* the kernel's overlay */
    CARREL_TREE_COPY,    /* a whole checkout */
};

/*
 * A workspace for the run: a git worktree of its own as /workspace, or with `is_folder` a
 * copy-on-write copy of a folder without git. Start from CARREL_WORKSPACE_OPTIONS_INIT.
 */
struct carrel_workspace_options {
    size_t size;      /* of this struct, filled in by the INIT macro */
    const char *repo; /* a directory in the repository (or the folder); NULL: the current one */
    const char *base; /* revision; NULL: HEAD */
    const char *task; /* ids; NULL: made up */
    const char *run;
    const char *resume; /* "R" or "T/R": go on in that workspace; everything above is its own */
    const char *fork; /* "R" or "T/R": begin with all that is in that workspace, as it is now */
    bool is_folder;
    bool is_dirty;              /* start from the uncommitted work in the user's tree */
    const char *const *include; /* patterns of ignored files to carry along; NULL-terminated */
    enum carrel_history history;
    const char *setup;             /* shell line whose result is kept as a layer; NULL: none */
    const char *const *setup_keys; /* files that decide whether that layer is still right */
    enum carrel_tree tree;
    enum carrel_outcome_action on_success;
    enum carrel_outcome_action on_failure; /* CARREL_KEEP or, unless resumed, CARREL_DISCARD */
    /* Called from time to time when the first checkout of a commit takes more than a second:
     * while the call waits, from another thread. */
    void (*progress)(uint64_t done, uint64_t total, void *context);
    void *progress_context;
    /* The executable of carrel(1): mounted into the sandbox, it answers git, which then need
     * not look at each file of a large tree. NULL: git looks. */
    const char *program;
};

#define CARREL_WORKSPACE_OPTIONS_INIT                                                          \
    {                                                                                          \
        .size = sizeof(struct carrel_workspace_options)                                        \
    }

/*
 * Makes a workspace in which nothing has run yet, for `resume` of a later run: everything is
 * prepared as for a run, and a sandbox with it starts true(1). *name, for
 * carrel_workspace_find(), is freed with carrel_free(). Errors as those of carrel_run().
 */
CARREL_PUBLIC int carrel_workspace_create(
        const struct carrel_workspace_options *options, char **name, struct carrel_error *err);

enum carrel_workspace_state {
    CARREL_WORKSPACE_CREATING,
    CARREL_WORKSPACE_RUNNING,     /* a process uses it */
    CARREL_WORKSPACE_INTERRUPTED, /* its carrel was killed; nothing is lost */
    CARREL_WORKSPACE_KEPT,        /* the changes are only in the workspace */
    CARREL_WORKSPACE_APPLIED,     /* also in the user's files */
    CARREL_WORKSPACE_COMMITTED,   /* on the run's branch */
};

/* "creating" "running" "interrupted" "kept" "applied" "committed" */
CARREL_PUBLIC const char *carrel_workspace_state_name(enum carrel_workspace_state state);

/* What is recorded about a workspace. Text is NULL if there is none. */
struct carrel_workspace_info {
    size_t size;      /* of this struct */
    const char *name; /* "T/R" */
    const char *task;
    const char *run;
    enum carrel_workspace_state state;
    const char *branch;     /* NULL: a folder without git */
    const char *base;       /* commit that the run began with */
    const char *tip;        /* of the run's own commits */
    const char *snapshot;   /* tip plus uncommitted work */
    const char *repository; /* its git directory; empty: unknown */
    const char *top;        /* the work tree, or the folder, that it was made of */
    const char *path;       /* of the workspace itself; its layout is not an interface */
    const char *opened_at;  /* see carrel_workspace_open() */
    const char *note;
    enum carrel_tree tree; /* CARREL_TREE_OVERLAY or CARREL_TREE_COPY */
    bool is_folder;
    bool is_locked; /* see carrel_workspace_lock() */
    bool is_open;
    bool is_committed;
    uint64_t
            n_other_commits; /* on other branches or in the stash; they stay in the workspace */
    int64_t created_s;       /* since 1970 */
};

/*
 * Calls `visit` for every workspace, oldest first: those of the repository at `dir`, or with
 * NULL all. -ENOENT: `dir` is in no repository. A non-zero answer of `visit` ends the walk and
 * is returned.
 */
CARREL_PUBLIC int carrel_workspace_each(const char *dir,
        int (*visit)(const struct carrel_workspace_info *info, void *context), void *context,
        struct carrel_error *err);

struct carrel_workspace; /* a handle: which workspace is meant. It holds no lock */

/*
 * `word`: "R" or "T/R"; if several tasks have that run, the one of the repository at `dir`
 * (NULL: the current directory). With NULL the only workspace of that repository, or of the
 * folder that `dir` lies in. -ENOENT: none; -EEXIST or -EINVAL: several, and the message names
 * them.
 */
CARREL_PUBLIC int carrel_workspace_find(const char *word, const char *dir,
        struct carrel_workspace **out, struct carrel_error *err);

CARREL_PUBLIC void carrel_workspace_free(struct carrel_workspace *workspace); /* NULL is fine */

/* As it was when it was found. It belongs to the handle. */
CARREL_PUBLIC const struct carrel_workspace_info *carrel_workspace_info(
        const struct carrel_workspace *workspace);

/*
 * The calls below find the workspace again and lock it for as long as they take: -EBUSY while a
 * process uses it, -ENOENT if it was discarded. If its carrel was killed, they first find out
 * what the run changed, perhaps with git in a sandbox. What they do is added to the journal of
 * the run.
 */

/* One changed file. */
struct carrel_workspace_file {
    size_t size; /* of this struct */
    const char *path;
    char status; /* A added, M modified, D deleted, T type changed */
    bool is_binary;
    uint64_t added, removed; /* lines */
    const char *sensitive;   /* why a program on the host would execute it; NULL: none would */
};

struct carrel_workspace_changes {
    size_t size; /* of this struct */
    const struct carrel_workspace_file *const *files;
    size_t n_files;
    size_t n_sensitive;
    uint64_t added, removed; /* lines */
    uint64_t n_commits;
    bool is_rewritten; /* the commits do not descend from the base */
};

/* A file that is in the workspace and not among the changes. */
struct carrel_workspace_oddity {
    size_t size; /* of this struct */
    const char *path;
    const char *why;
};

struct carrel_workspace_report {
    size_t size; /* of this struct */
    const struct carrel_workspace_info *info;
    const struct carrel_workspace_changes *total;       /* both of the following together */
    const struct carrel_workspace_changes *committed;   /* by the run */
    const struct carrel_workspace_changes *uncommitted; /* what it left beside its commits */
    const struct carrel_workspace_oddity *const *oddities;
    size_t n_oddities;
    uint64_t disk_bytes; /* that the workspace takes */
};

/* What the run changed. -ESTALE: git gc has removed the base commit. */
CARREL_PUBLIC int carrel_workspace_report(const struct carrel_workspace *workspace,
        struct carrel_workspace_report **out, struct carrel_error *err);
CARREL_PUBLIC void carrel_workspace_report_free(
        struct carrel_workspace_report *report); /* NULL is fine */

enum carrel_diff {
    CARREL_DIFF_PATCH, /* a unified diff */
    CARREL_DIFF_STAT,  /* the number of changed lines per file */
    CARREL_DIFF_NAMES, /* names with A, M, D or T */
};

struct carrel_diff_options {
    size_t size; /* of this struct, filled in by the INIT macro */
    enum carrel_diff form;
    bool is_uncommitted; /* only what the run did not commit */
};

#define CARREL_DIFF_OPTIONS_INIT                                                               \
    {                                                                                          \
        .size = sizeof(struct carrel_diff_options)                                             \
    }

/*
 * Writes what the run changed to `fd`, as git writes it: a pipe, a file or a memfd. Content is
 * the run's bytes and may control a terminal. `options`: NULL for a unified diff of all of it.
 */
CARREL_PUBLIC int carrel_workspace_diff(const struct carrel_workspace *workspace,
        const struct carrel_diff_options *options, int fd, struct carrel_error *err);

/* Writes the run's commits, newest first, in the same way. */
CARREL_PUBLIC int carrel_workspace_log(
        const struct carrel_workspace *workspace, int fd, struct carrel_error *err);

/* Writes all changes as a series of patches for git am. */
CARREL_PUBLIC int carrel_workspace_patch(
        const struct carrel_workspace *workspace, int fd, struct carrel_error *err);

/*
 * Puts the work on the run's branch in the user's repository. Uncommitted work becomes one more
 * commit, with `message` (NULL: a default). Returns 1; 0 if the run had committed everything
 * itself, so that `message` is not used. *commit, unless `commit` is NULL, is the id of the
 * last commit, freed with carrel_free(). -EEXIST: the user has a branch of that name.
 */
CARREL_PUBLIC int carrel_workspace_commit(const struct carrel_workspace *workspace,
        const char *message, char **commit, struct carrel_error *err);

enum carrel_apply {
    CARREL_APPLY_FILES,       /* into the work tree, neither staged nor committed */
    CARREL_APPLY_SQUASH,      /* staged */
    CARREL_APPLY_MERGE,       /* merge of the run's branch */
    CARREL_APPLY_CHERRY_PICK, /* each commit of the run on top of the user's branch */
};

struct carrel_apply_options {
    size_t size; /* of this struct, filled in by the INIT macro */
    enum carrel_apply how;
    const char *repo; /* a directory of the work tree that gets the changes; NULL: the one that
                         the workspace was made of */
    const char *here; /* without `repo`: refuse (-EXDEV) if this directory is in another
                         repository; NULL: do not look */
};

#define CARREL_APPLY_OPTIONS_INIT                                                              \
    {                                                                                          \
        .size = sizeof(struct carrel_apply_options)                                            \
    }

struct carrel_apply_conflict {
    size_t size; /* of this struct */
    const char *path;
    const char *why;
};

struct carrel_apply_outcome {
    size_t size;                                          /* of this struct */
    const struct carrel_apply_conflict *const *conflicts; /* any: no file was changed */
    size_t n_conflicts;
    size_t n_files;      /* that were changed; 0: there was nothing to apply */
    size_t n_submodules; /* at another commit now; their work trees are not changed */
    const char *commit;  /* the new HEAD of merge and cherry-pick; NULL: unchanged */
    const char *top;     /* the work tree */
    const char *branch;  /* that is checked out there; NULL: none */
};

/*
 * Applies the changes to the user's work tree: all or none. Conflicts are an outcome, not an
 * error. All but CARREL_APPLY_FILES put the work on the run's branch first. `options`: NULL for
 * the defaults. -EBUSY: also if a merge or rebase of the user is in progress.
 */
CARREL_PUBLIC int carrel_workspace_apply(const struct carrel_workspace *workspace,
        const struct carrel_apply_options *options, struct carrel_apply_outcome **out,
        struct carrel_error *err);
CARREL_PUBLIC void carrel_apply_outcome_free(
        struct carrel_apply_outcome *outcome); /* NULL is fine */

enum carrel_discard {
    CARREL_DISCARD_SAVED, /* refuse (-ENOTEMPTY) if changes would be lost */
    CARREL_DISCARD_FORCE, /* also changes that exist nowhere else */
};

/*
 * Removes the workspace. Its branch stays if it has commits that no other branch has, unless
 * the work was applied, which counts as saved, or CARREL_DISCARD_FORCE is given: then the
 * commits go with it, and with them their messages.
 */
CARREL_PUBLIC int carrel_workspace_discard(const struct carrel_workspace *workspace,
        enum carrel_discard what, struct carrel_error *err);

struct carrel_workspace_prune_options {
    size_t size;     /* of this struct, filled in by the INIT macro */
    const char *dir; /* in the repository whose workspaces are meant; NULL: of every one */
    uint64_t older_than_s; /* only those made longer ago */
    bool is_dry_run;       /* remove nothing */
};

#define CARREL_WORKSPACE_PRUNE_OPTIONS_INIT                                                    \
    {                                                                                          \
        .size = sizeof(struct carrel_workspace_prune_options)                                  \
    }

/*
 * Discards every finished, unlocked workspace that changed nothing or whose changes are on its
 * branch, and calls `visit` (NULL: none) for it. `options`: NULL for the defaults. A non-zero
 * answer of `visit` ends the walk and is returned.
 */
CARREL_PUBLIC int carrel_workspace_prune(const struct carrel_workspace_prune_options *options,
        int (*visit)(const struct carrel_workspace_info *info, void *context), void *context,
        struct carrel_error *err);

/*
 * Puts the changes on the run's branch and checks that branch out in a directory, where any git
 * works: at `at`, absolute, which does not exist yet, or with NULL in a place of carrel's.
 * *path, unless `path` is NULL, is the directory, freed with carrel_free().
 */
CARREL_PUBLIC int carrel_workspace_open(const struct carrel_workspace *workspace,
        const char *at, char **path, struct carrel_error *err);

/* Removes that directory; refused if it has changes. -EINVAL: the workspace is not open. */
CARREL_PUBLIC int carrel_workspace_close(
        const struct carrel_workspace *workspace, struct carrel_error *err);

/* Moves that directory to `to`, absolute. */
CARREL_PUBLIC int carrel_workspace_move(
        const struct carrel_workspace *workspace, const char *to, struct carrel_error *err);

/* Protects it from discard and prune. `reason` becomes its note; NULL: none. */
CARREL_PUBLIC int carrel_workspace_lock(
        const struct carrel_workspace *workspace, const char *reason, struct carrel_error *err);
CARREL_PUBLIC int carrel_workspace_unlock(
        const struct carrel_workspace *workspace, struct carrel_error *err);

/*
 * Writes again what the user's repository should have of it: branch, worktree. Returns the
 * number of repairs.
 */
CARREL_PUBLIC int carrel_workspace_repair(
        const struct carrel_workspace *workspace, struct carrel_error *err);

#ifdef __cplusplus
}
#endif
