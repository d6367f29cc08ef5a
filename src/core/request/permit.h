/* permit.h - what the caller asks for, and what the policy makes of it. */
#pragma once
#include "base/auto.h"
#include <carrel/run.h>
#include <stdbool.h>
#include <stddef.h>

struct carrel_error;
struct policy;
struct repo;
struct workspace;

/*
 * The caller's options with everything filled in that the policy decides. What the caller asked
 * for beyond the policy is refused with both places named (-EPERM).
 */
struct permit {
    struct carrel_run_options options;
    struct carrel_workspace_options workspace; /* behind options.workspace */
    const char **env;                          /* behind options.env */
    const char *const *fallback; /* runtimes to try next, in this order; or NULL */
    uint64_t output_file_bytes;  /* of each stream kept in a file */
    unsigned least_isolation;    /* that the sandbox must have, also one of a fallback */
    bool may_commit;             /* commits of the run may get a branch when it ends */
    char *require;
    char *best_effort;
};

/* Whether the policy gives this variable ("K=V") of the caller's to every program. */
bool permit_passes(const struct policy *policy, const char *variable);

/*
 * `given` and `policy` must outlive it. `environment`: the caller's variables, for those that
 * the policy passes on. Mounts and root are not looked at: see mounted.h.
 */
int permit_make(const struct carrel_run_options *given, const struct policy *policy,
        const char *const *environment, struct permit *out, struct carrel_error *err);
void permit_finish(struct permit permit); /* also after a failure */
DEFINE_AUTO(struct permit, permit_finish)

/*
 * What a workspace is a view of must be allowed as a mount (-EPERM, both places named): nothing
 * of it is written there, all of it can be read. `policy` may be NULL: everything. `path` is
 * the kernel's, of the folder that was opened as `named`.
 */
int permit_folder(const struct policy *policy, const char *path, const char *named,
        struct carrel_error *err);
int permit_repo(const struct policy *policy, const struct repo *repo, struct carrel_error *err);
int permit_workspace(
        const struct policy *policy, const struct workspace *ws, struct carrel_error *err);
