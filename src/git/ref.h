/*
 * ref.h - references: read as git's files backend has them (gitrepository-layout(5)), or by git
 * where they are not files; changed by git alone.
 */
#pragma once
#include "git/repo.h"

struct buf;

#define REF_NAME_MAX 1024

/* "HEAD", or a full name ("refs/...") as git-check-ref-format(1) has it: safe below a git dir.
 */
bool ref_is_name(const char *name);

/* Loose, then packed. Follows symbolic refs. -ENOENT: no such ref. `name` is a full name. */
int ref_read(const struct repo *repo, const char *name, char oid[static OID_MAX],
        struct carrel_error *err);

/*
 * Creates `name` at `oid` by git update-ref, which no hook of the repository sees. -EEXIST: it
 * exists already; -EIO in git's words: a reference above or below it is in the way, it is
 * locked, or there is no such object.
 */
int ref_create(const struct repo *repo, const char *name, const char *oid, const char *message,
        struct carrel_error *err);

/* Moves `name` from `old` to `oid` (git update-ref: reflog and all). -EBUSY/-ESTALE: it is not
 * at `old` any more. */
int ref_move(const struct repo *repo, const char *name, const char *oid, const char *old,
        const char *message, struct carrel_error *err);

/* Deletes `name` if it is still at `old`; -ESTALE otherwise. One that is gone is fine. */
int ref_delete(
        const struct repo *repo, const char *name, const char *old, struct carrel_error *err);

/* Whether another ref than `name` leads to the commit. False when that cannot be found out. */
bool ref_others_have(const struct repo *repo, const char *name, const char *oid);

/*
 * Whether the commit `oid` is in the history of a reference that no run made: 1 or 0. HEAD
 * counts as the user's, on whatever branch it is: what is checked out was checked out by the
 * user's own git.
 */
int ref_users_have(const struct repo *repo, const char *oid, struct carrel_error *err);

/* Whether some work tree of the repository has the branch checked out; true when in doubt. */
bool ref_is_checked_out(const struct repo *repo, const char *name);

/*
 * Adds to `packed` a packed-refs file with every branch, tag and remote branch of the
 * repository but those of runs (name_is_run_branch), sorted as git wants it. Symbolic ones are
 * there with what they stand for; damaged ones are left out. -EFBIG: over the maximum of
 * `packed`.
 */
int ref_snapshot(const struct repo *repo, struct buf *packed, struct carrel_error *err);
