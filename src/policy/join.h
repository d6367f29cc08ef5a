/*
 * join.h - joins the values of all files into one policy.
 *
 * Two questions are separate. Which value is in force? That of the one file that gives values;
 * a repository's file is applied on top and can only tighten. What is the limit? The bounds of
 * every file. A value that exceeds the bound of its own file, or of a file with more authority,
 * is an error that names both places; a value with more authority than the bound is lowered to
 * it.
 */
#pragma once
#include "base/arena.h"
#include "base/sha256.h"
#include "policy/document_values.h"

#define JOIN_DOCUMENTS_MAX 3

struct policy {
    struct arena arena;
    /* Each points into a document, the table of keys, or the arena. */
    const struct policy_value *values[POLICY_KEYS];
    const struct policy_value *maxima[POLICY_KEYS];
    const struct document_values *documents[JOIN_DOCUMENTS_MAX]; /* the least authority first */
    size_t n_documents;
    const struct document_values
            *base; /* the one that gives values; NULL: the built-in values */
    char hash[SHA256_HEX];
};

/* Computes values and maxima from policy->documents and policy->base. */
int join_documents(struct policy *policy, struct carrel_error *err);

/* Replaces a value by a copy of `value`, which the caller asked for; the bounds stay. */
int join_value(struct policy *policy, enum policy_key key, const struct policy_value *value,
        struct carrel_error *err);

/* Adds the items of `more` that the list of `key` lacks. */
int join_add(struct policy *policy, enum policy_key key, const struct policy_value *more,
        struct carrel_error *err);

/* Checks values against bounds and against each other; after the last join_value(). */
int join_settle(struct policy *policy, struct carrel_error *err);

/* Computes the hash of the policy; after join_settle(). */
int join_hash(struct policy *policy, struct carrel_error *err);

/* "carrel.yaml:4:13", "environment SANDBOX_TYPE" ...: for messages. */
#define JOIN_PLACE_MAX 320
