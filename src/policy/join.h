/*
 * join.h - the layers of all files into one policy.
 *
 * Two questions are kept apart. Which value counts? That of the one file that gives values; a
 * repository's file lies on top of it and can only tighten. What may nobody pass? The bounds of
 * every file. A value that passes the bound of a file that stands above it, or of its own, is
 * an error that names both places; one that stands above the bound is lowered to it.
 */
#pragma once
#include "base/arena.h"
#include "base/sha256.h"
#include "policy/document_values.h"

#define JOIN_DOCUMENTS_MAX 3

struct policy {
    struct arena arena;
    /* Each lies in a layer, in the table of keys, or in the arena. */
    const struct policy_value *values[POLICY_KEYS];
    const struct policy_value *maxima[POLICY_KEYS];
    const struct layer *layers[JOIN_DOCUMENTS_MAX]; /* the least authority first */
    size_t n_documents;
    const struct layer *base; /* the one that gives values; NULL: what is built in */
    char hash[2 * SHA256_BYTES + 1];
};

/* Values and maxima from policy->layers and policy->base. */
int join_documents(struct policy *policy, struct carrel_error *err);

/* Puts a copy of `value`, which its caller asked for, over the one there is; the bounds stay.
 */
int join_value(struct policy *policy, enum policy_key key, const struct policy_value *value,
        struct carrel_error *err);

/* Adds the items of `more` that the list of `key` lacks. */
int join_add(struct policy *policy, enum policy_key key, const struct policy_value *more,
        struct carrel_error *err);

/* Holds values against bounds and against each other; after the last join_value(). */
int join_settle(struct policy *policy, struct carrel_error *err);

/* What counts is settled: its hash. */
int join_hash(struct policy *policy, struct carrel_error *err);

/* "carrel.yaml:4:13", "environment SANDBOX_TYPE" ...: for messages. */
#define JOIN_PLACE_MAX 320
