/* permit_paths.h - which paths of the host a run may show. */
#pragma once

struct carrel_error;
struct carrel_run_options;
struct policy;
struct repo;
struct workspace;

/* The mounts and the root that the caller asks for; -EPERM with both places named. */
int permit_paths(const struct carrel_run_options *options, const struct policy *policy,
        struct carrel_error *err);

/*
 * The same for what a workspace is a view of: nothing of it is written there, all of it can be
 * read. `policy` may be NULL: everything.
 */
int permit_folder(const struct policy *policy, const char *path, struct carrel_error *err);
int permit_repo(const struct policy *policy, const struct repo *repo, struct carrel_error *err);
int permit_workspace(
        const struct policy *policy, const struct workspace *ws, struct carrel_error *err);
