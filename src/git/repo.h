/*
 * repo.h - the user's repository: where its parts are, and how revisions are resolved.
 *
 * Finding it and reading a branch start no process: a run must start in milliseconds. Only what
 * plain files cannot answer is asked of git.
 */
#pragma once
#include "base/auto.h"
#include "git/git.h"
#include <stdbool.h>
#include <stddef.h>

struct carrel_error;

#define OID_MAX 65 /* 64 hex digits and a NUL */

struct repo {
    char *top;        /* its work tree; NULL: bare */
    char *git_dir;    /* of this work tree: absolute, canonical */
    char *common_dir; /* the same in the main work tree */
    char *key;        /* one path component, unique per common dir: for our state */
    char **objects;   /* every object directory, its own first, alternates followed; NULL at end
                       */
    int *object_fds;  /* the same, open (O_PATH): what is mounted */
    bool has_file_refs; /* refs are files (not reftable): ref.c may read them */
    bool is_sha256;
    bool is_partial; /* a partial clone: git may have to fetch missing objects */
    bool may_fetch;  /* it may do so: how is not a matter of the repository's own configuration
                      */
    char **settings; /* what a git that obeys the user is told, to ignore filters that the
                      * repository's own configuration sets (see scope.h); NULL: nothing */
    char *filters;   /* the names of those that are left off; NULL: none */
};

/*
 * Opens the repository at `dir` or above it. -ENOENT with a clear message if there is none (it
 * mentions --workdir DIR --cow for folders without git). Refuses one that belongs to another
 * user, as git does (the owner of .git must be the effective user, or with uid 0 the SUDO_UID),
 * with git's remedy, unless safe.directory allows it (git is asked only then). Also refuses a
 * bare repository inside the work tree of another one: it may have come with the content, and
 * its configuration too.
 */
int repo_open(const char *dir, struct repo **out, struct carrel_error *err);

/* The same of an open directory; `name` is for messages. */
int repo_open_at(int dir, const char *name, struct repo **out, struct carrel_error *err);
void repo_free(struct repo *repo);
DEFINE_AUTO(struct repo *, repo_free)

/*
 * The commit that `rev` names ("HEAD" if NULL). Full ids, HEAD and branches need no process; a
 * full id is not checked here: its user finds out whether it is a commit. A rev that starts
 * with '-' or has control bytes is refused before it becomes an argument. -ENOENT: there is no
 * such commit.
 */
int repo_resolve(const struct repo *repo, const char *rev, char oid[static OID_MAX],
        struct carrel_error *err);

/* Whether `oid` exists and is a commit: 1 or 0. */
int repo_has_commit(const struct repo *repo, const char *oid, struct carrel_error *err);

/* A scrubbed git on this repository (common dir, no work tree). */
struct git repo_git(const struct repo *repo);

/* One that obeys the user, but no command that the repository's own configuration names. */
struct git repo_user_git(const struct repo *repo);
