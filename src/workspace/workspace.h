/*
 * workspace.h - one run's own copy-on-write tree and git dir, and what is known of it.
 *
 *   <state>/workspaces/<task>/<run>/
 *       upper/ work/         the files the run changed
 *       gitupper/ gitwork/   the git state the run changed
 *       objects/             quarantine of its harvest
 *       carried              names of files of the user's that were copied into upper/
 *       meta                 "key value" lines, replaced whole
 *       creating             an empty file, there until everything else is
 *   <state>/workspaces/<task>/runs/<run>    where it is opened on the host, only while it is
 *
 * <state>/workspaces is a store, see base/store.h. The lock of a workspace is that of its
 * entry, held exclusively by the process that has it mounted or changes it.
 */
#pragma once
#include "base/auto.h"
#include "git/name.h"
#include "git/repo.h"
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

struct carrel_error;
struct checkout;

enum workspace_phase {
    WORKSPACE_CREATING, /* a crash here: nothing of value, swept */
    WORKSPACE_READY,    /* made; a run has it, or had it and was killed */
    WORKSPACE_FINISHED, /* its run ended and was harvested; nothing was written since */
};

enum workspace_mode { WORKSPACE_OVERLAY, WORKSPACE_COPY };
const char *workspace_mode_name(enum workspace_mode mode); /* "overlay" "copy" */

struct workspace {
    char *path; /* of its directory */
    int dir;    /* the same, open */
    int lock;   /* -1: not held */
    /* meta */
    char task[NAME_ID_MAX + 1];
    char run[NAME_ID_MAX + 1];
    char branch[NAME_BRANCH_MAX]; /* short name; empty for a folder without git */
    char *repo;                   /* common dir of the repository; empty: none, or unknown */
    char *top;                    /* the user's work tree or folder at creation; NULL: bare */
    char base[OID_MAX];
    char tip[OID_MAX];       /* of the run's own commits, harvested; empty: none yet */
    char snapshot[OID_MAX];  /* tip plus uncommitted work, harvested; empty: none yet */
    char branch_at[OID_MAX]; /* where we put the branch last; empty: it was never made */
    char branch_to[OID_MAX]; /* and where it is to be next; empty: nowhere */
    char applied[OID_MAX];   /* the snapshot that is whole in the user's files; empty: none */
    char applied_tree[OID_MAX];  /* its files: a later look gives the same ones another id */
    char setup[OID_MAX];         /* key of the setup layer; empty: none */
    char *opened_at;             /* where it is open on the host; NULL: nowhere */
    char worktree[NAME_MAX + 1]; /* and which of the repository's worktrees/ that is */
    char *layers;                /* ids of the sealed layers that it lies on; NULL: none */
    enum workspace_phase phase;
    enum workspace_mode mode;
    bool is_folder;       /* no git inside: a copy-on-write folder */
    bool is_cut;          /* the run sees the base commit alone */
    bool is_ahead;        /* commits were made where it was opened, which its tree has not */
    bool is_user_locked;  /* `workspace lock`: discard and prune refuse */
    bool is_opened;       /* mounted or checked out at its place on the host */
    bool is_published;    /* its snapshot is on the branch */
    bool is_branch_asked; /* the user had the branch made; else a run that committed did */
    bool is_branch_spare; /* a discard removes the branch, though it has the only commits */
    uint64_t n_other_commits; /* commits that only its git dir has: other branches, the stash */
    int64_t created_s;
    uint64_t created_ns; /* and so much of the next second: several are made in one */
    char note[160];      /* "machine stopped under this run" and the like */
};
void workspace_free(struct workspace *ws); /* releases the lock */
DEFINE_AUTO(struct workspace *, workspace_free)

struct workspace_request {
    const char *state;       /* state directory */
    const struct repo *repo; /* of a folder: the hidden one, see folder.h */
    const struct checkout *checkout;
    const char *task, *run;
    const char *base;
    enum workspace_mode mode;
    bool is_folder;
    bool is_cut;
    bool is_base_loose; /* no branch of the user's has the base: it gets a ref of its own */
    const char *setup;  /* NULL: none */
    /* Of a fork. */
    const char *layers;           /* as in the record; NULL: no fork */
    const char *const *git_below; /* what its git dir lies on: paths, topmost first */
    const char *old_branch;       /* of the workspace that it is a fork of */
};

/*
 * Makes a workspace: directory, lock, private git dir, in an order such that a crash at any
 * point is recognised by workspace_sweep(). -EEXIST: the id is taken, or the user has a branch
 * of the run's name. Nothing is written to the repository, and no process is started, unless
 * the base needs a ref. On success the caller holds the lock. On failure nothing is left.
 */
int workspace_create(const struct workspace_request *request, struct workspace **out,
        struct carrel_error *err);

/* -EEXIST where there is one, in the words of workspace_create(); which still must ask. */
int workspace_check_free(
        const char *state, const char *task, const char *run, struct carrel_error *err);

/* Finds a workspace by "R" or "T/R". -ENOENT with the nearest, -EEXIST when R alone is
 * ambiguous (the message names the tasks). Does not take the lock. */
int workspace_find(
        const char *state, const char *name, struct workspace **out, struct carrel_error *err);

/*
 * The full names of the run's branch, refs/heads/task-<T>-run-<R>, and of the ref that keeps a
 * base from git gc which no branch has, refs/carrel/<T>/<R>/<time>: another state directory may
 * have a run of the same ids.
 */
#define WORKSPACE_REF_MAX (sizeof("refs/carrel/") + NAME_BRANCH_MAX + 48)
void workspace_branch_ref(const struct workspace *ws, char ref[static WORKSPACE_REF_MAX]);
void workspace_base_ref(const struct workspace *ws, char ref[static WORKSPACE_REF_MAX]);

/* Where it is opened on the host unless told otherwise: <state>/workspaces/<task>/runs/<run>.
 */
int workspace_opened_path(
        const struct workspace *ws, char *path, size_t size, struct carrel_error *err);

/*
 * -EBUSY with who when another process holds it, -ENOENT when it was discarded meanwhile. Reads
 * meta again: what was known before the lock may be old. Held already is fine.
 */
int workspace_take_lock(struct workspace *ws, struct carrel_error *err);

/* Writes meta. */
int workspace_save(struct workspace *ws, struct carrel_error *err);

/* Records the layers that it lies on. On failure `ws` still has those of before. */
int workspace_set_layers(struct workspace *ws, const char *layers, struct carrel_error *err);

/*
 * Calls `each` for every workspace; those of one repository when repo is not NULL. `each` may
 * keep it with ptr_steal(ws); what it returns, if negative, ends the walk.
 */
int workspace_each(const char *state, const struct repo *repo,
        int (*each)(struct workspace **ws, void *context), void *context,
        struct carrel_error *err);

/* Reopens the repository it belongs to, by the recorded common dir; of a folder, the hidden one
 * with the folder as its work tree. */
int workspace_repo(const struct workspace *ws, struct repo **out, struct carrel_error *err);

/*
 * Removes it: the directory loses its name, then the files are removed and its refs. A
 * branch that carrel made is removed if it is at base or another ref reaches its commit; never
 * while some worktree has it checked out. -EBUSY when locked by the user, opened or in use.
 * `ws` stays to be freed, and is of no other use.
 */
int workspace_discard(const char *state, struct workspace *ws, struct carrel_error *err);

/* Finishes or undoes what crashes left: half-made and half-removed workspaces, stale opened
 * mounts. Changed work is never removed. Returns how many things. */
int workspace_sweep(const char *state, struct carrel_error *err);
