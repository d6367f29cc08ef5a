/* delta.h - the difference between two trees, path by path. */
#pragma once
#include "git/repo.h"

#define DELTA_GITLINK 0160000
#define DELTA_LINK 0120000

/* What git records of one path. */
struct delta_side {
    unsigned mode; /* 0: not there */
    char oid[OID_MAX];
};

struct delta {
    char *path;
    struct delta_side old, new;
};

struct delta_list {
    struct delta *items; /* sorted by path bytes, each path once */
    size_t n;
};
void delta_list_finish(struct delta_list *list);

/*
 * Pure: parses the output of `git diff-tree -r -z --raw --no-renames --full-index` and
 * diff-index.
 */
int delta_parse(const char *text, size_t len, struct delta_list *out, struct carrel_error *err);

/* Compares two trees (or commits) that `git` can read. */
int delta_trees(const struct git *git, const char *old, const char *new, struct delta_list *out,
        struct carrel_error *err);

/* Compares a tree with the index of `git`. Unmerged paths have no new side. */
int delta_index(const struct git *git, const char *tree, struct delta_list *out,
        struct carrel_error *err);

const struct delta *delta_find(const struct delta_list *list, const char *path);
bool delta_same(const struct delta_side *a, const struct delta_side *b);
