/*
 * combine.h - three trees become one, in memory: no work tree, no driver, no configuration.
 *
 * All of it happens with the git of a scratch directory (scratch.h). Where a function makes
 * objects, they go to git->object_dir.
 */
#pragma once
#include "git/repo.h"

/* Paths that both sides changed; NULL-terminated. Empty (or NULL): there is a result. */
struct combine_conflicts {
    char **paths;
    size_t n;
};
void combine_conflicts_finish(struct combine_conflicts *conflicts);

/* git's merge of two commits, by their own history. */
int combine_commits(const struct git *git, const char *ours, const char *theirs,
        char tree[static OID_MAX], struct combine_conflicts *conflicts,
        struct carrel_error *err);

/* The change from tree (or commit) `base` to `theirs`, made to `ours`. */
int combine_trees(const struct git *git, const char *base, const char *ours, const char *theirs,
        char tree[static OID_MAX], struct combine_conflicts *conflicts,
        struct carrel_error *err);

/* One commit, written as it stands. `author` and `committer` are "Name <address> 123 +0000". */
struct combine_commit {
    const char *tree;
    const char *parents[2]; /* NULL: none */
    const char *author, *committer;
    const char *encoding; /* NULL: UTF-8 */
    const char *message;
    size_t message_len;
};
int combine_write(const struct git *git, const struct combine_commit *commit,
        char oid[static OID_MAX], struct carrel_error *err);

/*
 * The commits base..tip one by one on top of `head`, each with its own author and message and
 * `committer`. Those that bring nothing new are left out. -ENOTSUP: one of them is a merge.
 * Stops at the first conflict.
 */
int combine_pick(const struct git *git, const char *base, const char *tip, const char *head,
        const char *committer, char commit[static OID_MAX], struct combine_conflicts *conflicts,
        struct carrel_error *err);

/* First line of what git printed, which must be an object's name. */
int combine_ask_oid(const struct git *git, const char *const *args, char oid[static OID_MAX],
        struct carrel_error *err);
