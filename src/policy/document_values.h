/* document_values.h - what one file says about keys, and nothing of the other files. */
#pragma once
#include "policy/policy.h"

struct arena;
struct node;

struct document_values {
    enum policy_authority authority;
    const char *name;                        /* of the file */
    struct policy_value values[POLICY_KEYS]; /* is_set: it was written */
    struct policy_value maxima[POLICY_KEYS]; /* also of keys whose value is their bound */
};

/*
 * Takes a mapping of sections into `given`, over what is there. `skip` is a key at its top
 * that another reader takes; messages list it among the expected keys. Everything lives in
 * `arena`, and so must given->name and the nodes.
 */
int document_values_take(struct document_values *given, struct arena *arena,
        const struct node *map, const char *skip, struct carrel_error *err);
