/* run_workspace_args.h - the options of `carrel run` that give the run a workspace. */
#pragma once
#include "cli/args/options.h"
#include <carrel/run.h>
#include <stdbool.h>
#include <stddef.h>

struct run_args;

struct run_workspace_args {
    struct carrel_workspace_options options;
    char **include; /* behind options.include */
    size_t n_include;
    char **setup_keys;
    size_t n_setup_keys;
    char *folder; /* of --workdir, with --cow */
    bool is_cow;
    /* Names of options that were given, for messages and contradictions; NULL: none was. */
    const char *asked_by;  /* the first that asks for a workspace */
    const char *made_by;   /* the first that decides how one is made */
    const char *needs_git; /* the first that means nothing without git */
};

int run_take_workspace(void *target, const char *value, struct carrel_error *err);
int run_take_repo(void *target, const char *value, struct carrel_error *err);
int run_take_base(void *target, const char *value, struct carrel_error *err);
int run_take_fork(void *target, const char *value, struct carrel_error *err);
int run_take_task(void *target, const char *value, struct carrel_error *err);
int run_take_run(void *target, const char *value, struct carrel_error *err);
int run_take_dirty(void *target, const char *value, struct carrel_error *err);
int run_take_include(void *target, const char *value, struct carrel_error *err);
int run_take_history(void *target, const char *value, struct carrel_error *err);
int run_take_setup(void *target, const char *value, struct carrel_error *err);
int run_take_setup_key(void *target, const char *value, struct carrel_error *err);
int run_take_tree(void *target, const char *value, struct carrel_error *err);
int run_take_on_success(void *target, const char *value, struct carrel_error *err);
int run_take_on_failure(void *target, const char *value, struct carrel_error *err);
int run_take_cow(void *target, const char *value, struct carrel_error *err);

/* Rows of the table in run_args.c. */
/* clang-format off */
#define RUN_WORKSPACE_ROWS                                                                     \
    { "cow", NULL, "with --workdir: copy-on-write, DIR is not changed",                        \
            RUN_FILES, .take = run_take_cow },                                                 \
    { "workspace", NULL, "git worktree of this repository as /workspace",                      \
            RUN_WORKSPACE, .take = run_take_workspace },                                       \
    { "repo", "DIR", "the same of the repository at DIR",                                      \
            RUN_WORKSPACE, .take = run_take_repo },                                            \
    { "base", "REV", "commit to start from (default: HEAD)",                                   \
            RUN_WORKSPACE, .take = run_take_base },                                            \
    { "fork", "RUN", "start with the workspace of another run",                                \
            RUN_WORKSPACE, .take = run_take_fork },                                            \
    { "task", "ID", "task that the run belongs to; its branch is task-<task>-run-<run>",       \
            RUN_WORKSPACE, .take = run_take_task },                                            \
    { "run", "ID", "id of run and workspace (default: generated)",                             \
            RUN_WORKSPACE, .take = run_take_run },                                             \
    { "dirty", NULL, "start with your uncommitted changes",                                    \
            RUN_WORKSPACE, .take = run_take_dirty },                                           \
    { "include", "PATTERN", "copy ignored files that match, such as .env",                     \
            RUN_WORKSPACE, .take = run_take_include },                                         \
    { "history", "full|cut", "full (default), or cut: only the base commit",                   \
            RUN_WORKSPACE, .take = run_take_history },                                         \
    { "setup", "LINE", "shell line whose files later runs reuse",                              \
            RUN_WORKSPACE, .take = run_take_setup },                                           \
    { "setup-key", "FILE", "run the setup line again when this file changes",                  \
            RUN_WORKSPACE, .take = run_take_setup_key },                                       \
    { "tree", "KIND", "how it is built: auto (default), overlay or copy",                     \
            RUN_WORKSPACE, .take = run_take_tree },                                            \
    { "on-success", "ACTION", "keep (default), commit, apply or discard changes",              \
            RUN_WORKSPACE, .take = run_take_on_success },                                      \
    { "on-failure", "ACTION", "keep (default) or discard changes",                             \
            RUN_WORKSPACE, .take = run_take_on_failure }
/* clang-format on */

/* After all options are read: looks for contradictions and sets options.workspace. */
int run_workspace_complete(struct run_args *args, struct carrel_error *err);

/* The same for going on in a workspace: refuses what decides how one is made. */
int run_workspace_resume(struct run_args *args, struct carrel_error *err);

void run_workspace_finish(struct run_workspace_args *workspace);
