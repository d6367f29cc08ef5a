/*
 * verbs.h - the verbs on workspaces, for `carrel workspace` and later callers.
 *
 * `name` is "R" or "T/R" everywhere. Functions return plain data; nothing here prints. Those
 * that need a harvest of a workspace whose run is over take it first, perhaps in a sandbox.
 */
#pragma once
#include "base/auto.h"
#include "workspace/apply/apply.h"
#include "workspace/harvest/harvest.h"
#include "workspace/workspace.h"

struct carrel_error;

/* "running" "kept" (harvested or not, work only here) "applied" (whole in the user's files)
 * "committed" (on its branch) "interrupted" (its carrel was killed) "creating" */
const char *workspaces_state(const struct workspace *ws);

struct workspace_list {
    struct workspace **items; /* oldest first */
    size_t n;
};
void workspace_list_free(struct workspace_list *list);
DEFINE_AUTO(struct workspace_list *, workspace_list_free)

/* All, or those of the repository at `repo_dir`. */
int workspaces_list(
        const char *repo_dir, struct workspace_list **out, struct carrel_error *err);

/* The "T/R" that `given` ("R" or "T/R") means; where several tasks have that run, the one of
 * the repository at `repo_dir`. */
int workspaces_resolve(const char *given, const char *repo_dir, char *name, size_t size,
        struct carrel_error *err);

/* One workspace with what it changed: base..snapshot. */
struct workspace_report {
    struct workspace *ws;
    struct harvest_summary committed;   /* base..tip: the run's own commits */
    struct harvest_summary total;       /* base..snapshot: with uncommitted work */
    struct harvest_summary uncommitted; /* tip..snapshot */
    struct oddity *oddities;
    size_t n_oddities;
    uint64_t disk_bytes; /* that the workspace takes */
    char *opened;        /* where it is open; NULL: nowhere */
};
void workspace_report_free(struct workspace_report *report);
DEFINE_AUTO(struct workspace_report *, workspace_report_free)
int workspaces_report(
        const char *name, struct workspace_report **out, struct carrel_error *err);

struct diff_options {
    bool is_stat;        /* --stat */
    bool is_names;       /* --name-status */
    bool is_uncommitted; /* only tip..snapshot */
};
/* Unified diff of what the run changed, written to `fd` as git writes it, paths quoted. */
int workspaces_diff(
        const char *name, const struct diff_options *options, int fd, struct carrel_error *err);

/* The run's commits, newest first, as git writes them: messages are the run's bytes. */
int workspaces_log(const char *name, int fd, struct carrel_error *err);

/* A patch series (git format-patch --stdout) of base..snapshot. */
int workspaces_patch(const char *name, int fd, struct carrel_error *err);

/* Puts commits and uncommitted work on the run's branch. `message`, for the latter: NULL for
 * ours. Returns the new tip in `commit`, and whether there was something uncommitted. */
int workspaces_commit(const char *name, const char *message, char commit[static OID_MAX],
        bool *has_more, struct carrel_error *err);

/* Commits first unless how is APPLY_FILES. Conflicts are data, see apply.h. `repo_dir` and
 * `here` decide whose files are meant, see target_choose(). */
int workspaces_apply(const char *name, enum apply_how how, const char *repo_dir,
        const char *here, struct apply_outcome *out, struct carrel_error *err);

/* -EBUSY while its run lives or it is locked; -ENOTEMPTY when it has work that is nowhere else
 * and not `force`. */
int workspaces_discard(const char *name, bool force, struct carrel_error *err);

/* Gives it a directory on the host where unmodified git works. `at`: NULL for the usual place.
 * `path` receives it. */
int workspaces_open(
        const char *name, const char *at, char *path, size_t size, struct carrel_error *err);
/* Removes that directory; what was changed there is kept in the workspace. -EINVAL: it is not
 * open. */
int workspaces_close(const char *name, struct carrel_error *err);
/* Moves an opened directory. */
int workspaces_move(const char *name, const char *to, struct carrel_error *err);

int workspaces_lock(const char *name, const char *reason, struct carrel_error *err);
int workspaces_unlock(const char *name, struct carrel_error *err);

/* Writes again what the repository should have of it (admin dir, branch). Returns the number of
 * repairs. */
int workspaces_repair(const char *name, struct carrel_error *err);

/*
 * Discards every finished, unlocked workspace that has no work of its own (nothing changed, or
 * all of it committed and still on some ref; no other commits) and is older than `age_s`.
 * Returns how many; with is_dry_run only counts. `each` may be NULL.
 */
int workspaces_prune(const char *repo_dir, uint64_t age_s, bool is_dry_run,
        void (*each)(const struct workspace *ws, void *context), void *context,
        struct carrel_error *err);
