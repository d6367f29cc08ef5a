/*
 * private.h - the git dir that a run has for itself.
 *
 * It is an overlay: a template that all runs of a commit share (index, configuration, where the
 * objects are), and an upper directory with what is the run's own (HEAD, its branch, a snapshot
 * of the other refs). Nothing in it is ever read as configuration by the host.
 */
#pragma once
#include "git/repo.h"

/* Where the parts appear in the sandbox. */
#define PRIVATE_GIT_DIR "/run/carrel/git"
#define PRIVATE_OBJECTS                                                                        \
    "/run/carrel/objects" /* then objects-1, objects-2 ... for alternates                      \
                           */
#define PRIVATE_WORK_TREE "/workspace"

/* Of a file system monitor for git, where there is one: see monitor.h. */
#define PRIVATE_CHANGES "/run/carrel/changes"     /* the upper directory, read-only */
#define PRIVATE_LAYER "/run/carrel/setup"         /* the setup layer, read-only, if any */
#define PRIVATE_MONITOR "/run/carrel/git-monitor" /* the program: carrel under this name */
#define PRIVATE_MONITOR_CONFIG "/run/carrel/git-monitor.config"

/*
 * Fills `dir` (an open directory without these files) as template: config, description,
 * info/exclude, info/attributes if there are any, objects/info/alternates, objects/pack, hooks
 * (empty), refs and logs (empty), shallow if the repository has one; no HEAD, so git never
 * takes it for a repository. The configuration is ours: format version (and object format),
 * bare false, logallrefupdates, gc.auto 0, the user's name and address, what decides how files
 * look on disk (core.filemode, symlinks, ignorecase, autocrlf, eol ...) and filter drivers as
 * the user has them; no remotes, no includes, no credentials: see config.c for the table.
 * info/exclude holds the user's global excludes and the repository's; it is trusted and may be
 * read again later. Asks git, so it is not for the way of every run.
 */
int private_make_template(const struct repo *repo, int dir, struct carrel_error *err);

/* Fills `dir` (the upper, empty): HEAD and its log, and packed-refs with the other refs and the
 * branch. */
int private_make_upper(const struct repo *repo, int dir, const char *branch, const char *commit,
        struct carrel_error *err);

/*
 * Whether a run left its refs as we wrote them: HEAD and its branch are still `commit`, no
 * object was added. Reads bytes below `dir` without following links, as data. False when in
 * doubt.
 */
bool private_is_untouched(int dir, const char *branch, const char *commit);
