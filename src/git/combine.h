/*
 * combine.h - three-way merges in memory: no work tree, no driver, no configuration.
 *
 * Everything uses the git of a scratch directory (scratch.h). New objects are written to
 * git->object_dir.
 */
#pragma once
#include "git/repo.h"

/* Paths that both sides changed; NULL-terminated. Empty (or NULL): no conflict. */
struct combine_conflicts {
    char **paths;
    size_t n;
};
void combine_conflicts_finish(struct combine_conflicts *conflicts);

/* git's merge of two commits, with the merge base from their history. */
int combine_commits(const struct git *git, const char *ours, const char *theirs,
        char tree[static OID_MAX], struct combine_conflicts *conflicts,
        struct carrel_error *err);

/* The change from tree (or commit) `base` to `theirs`, applied to `ours`. */
int combine_trees(const struct git *git, const char *base, const char *ours, const char *theirs,
        char tree[static OID_MAX], struct combine_conflicts *conflicts,
        struct carrel_error *err);

/* One commit, written literally. `author` and `committer` are "Name <address> 123 +0000". */
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
 * Picks the commits base..tip one by one on top of `head`, each with its own author and message
 * and with `committer`. Commits without an effect are left out. -ENOTSUP: one of them is a
 * merge. Stops at the first conflict.
 */
int combine_pick(const struct git *git, const char *base, const char *tip, const char *head,
        const char *committer, char commit[static OID_MAX], struct combine_conflicts *conflicts,
        struct carrel_error *err);

/* The first line of git's output, which must be an object id. */
int combine_ask_oid(const struct git *git, const char *const *args, char oid[static OID_MAX],
        struct carrel_error *err);
