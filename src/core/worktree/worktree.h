/*
 * worktree.h - a workspace as a sandbox sees it: joins the repository, its pristine tree from
 * the cache, the workspace, and the mounts that show them to a program.
 */
#pragma once
#include "base/auto.h"
#include "git/repo.h"
#include "runtime/runtime.h"
#include "workspace/cache/checkout.h"
#include "workspace/workspace.h"
#include <limits.h>
#include <stdbool.h>

struct carrel_error;
struct carrel_workspace_options;
struct layer_list;
struct layers;
struct policy;
struct worktree_origin;

struct worktree {
    char state[PATH_MAX];
    struct repo *repo;
    struct repo *target; /* the work tree an apply is for; NULL: repo's; see target.h */
    struct checkout *checkout;
    struct workspace *ws;
    char *carried;           /* files that a .worktreeinclude added, for people; NULL: none */
    const char **base;       /* trees that the layers of the tree lie on */
    const char *git_base[2]; /* the same of the git dir */
    struct layers *layers;
    struct sandbox_mount *mounts;
    size_t n_mounts;
    char **strings; /* what the mounts point to */
    size_t n_strings;
    int *module_fds; /* so do they: object directories of submodules */
    size_t n_module_fds;
};
void worktree_free(struct worktree *worktree);
DEFINE_AUTO(struct worktree *, worktree_free)

/* See workspace_discard(). */
int worktree_discard(struct worktree *worktree, struct carrel_error *err);

/* What a workspace is made for. */
struct worktree_request {
    const struct carrel_workspace_options *options;
    struct runtime *runtime;
    const struct sandbox_spec *spec; /* whose user the files must belong to */
    const struct policy *policy;     /* what it may show; NULL: everything */
    const char *task;                /* used when the options name none */
    const char *run;
    const struct worktree_origin *origin; /* what it is a fork of; NULL: of nothing */
    /* Records a step before it is taken; `detail` is JSON text of an object. NULL: no record.
     */
    int (*record)(
            const char *event, const char *detail, void *context, struct carrel_error *err);
    void *record_context;
};

/*
 * Makes a workspace, or takes up an old one (options->resume); the caller holds its lock. The
 * first run of a commit fills the cache.
 */
int worktree_open(const struct worktree_request *request, struct worktree **out,
        struct carrel_error *err);

/* --- mounts.c --- */

/* Opens the layers `list` of a workspace like `ws`; worktree->checkout is set. */
int worktree_open_layers(struct worktree *worktree, const struct workspace *ws,
        const struct layer_list *list, struct carrel_error *err);

/* The mounts of its sandboxes, without that of worktree_mount_monitor(). */
int worktree_make_mounts(struct worktree *worktree, struct carrel_error *err);

/* The same again, after the layers have changed. */
int worktree_remount(struct worktree *worktree, struct carrel_error *err);

/* The object directories of submodules; the mounts have no use any more. */
void worktree_close_modules(struct worktree *worktree);

/* Lets git ask `program` what changed, if that can tell; see monitor.h. */
int worktree_mount_monitor(
        struct worktree *worktree, const char *program, struct carrel_error *err);

/* --- worktree.c --- */

/* The ids of the workspace that `name` ("R" or "T/R") means. */
int worktree_find_ids(const char *name, char task[static NAME_ID_MAX + 1],
        char run[static NAME_ID_MAX + 1], struct carrel_error *err);

/* -EEXIST where a workspace has these ids: before anything is recorded of another run. */
int worktree_check_free(const char *task, const char *run, struct carrel_error *err);

/* The same for a workspace that is there: its repository, its tree and the mounts. Takes over
 * `ws`, also on failure. */
int worktree_reopen(struct workspace *ws, struct worktree **out, struct carrel_error *err);

/* --- how the tree of a workspace can be shown on this machine --- */

/* The kind of tree that the options name or, if they name none, the first that works here. A
 * kind that was named and does not work is -ENOTSUP with what is missing. */
int tree_kind_choose(const struct worktree_request *q, const char *state,
        enum workspace_mode *mode, struct carrel_error *err);

/* True when an overlay worked here since the machine started. `err` says why not. */
bool tree_kind_has_overlay(
        const struct worktree_request *q, const char *state, struct carrel_error *err);
