/* policy.h - what a run may do: the policy in force, and where each value was written. */
#pragma once
#include <carrel/error.h>
#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Which policy. Start from CARREL_POLICY_OPTIONS_INIT; everything has a default. */
struct carrel_policy_options {
    size_t size;         /* of this struct, filled in by the INIT macro */
    const char *file;    /* NULL: the one that is found; "none": no file's values */
    const char *profile; /* of that file; NULL: its top level */
};

#define CARREL_POLICY_OPTIONS_INIT                                                             \
    {                                                                                          \
        .size = sizeof(struct carrel_policy_options)                                           \
    }

struct carrel_policy; /* opaque: read it with the functions below */

/*
 * The policy that carrel_run() would use in this directory and environment. Errors begin with
 * FILE:LINE:COLUMN if there is one, name the key and say what was expected; their origin is
 * CARREL_FROM_POLICY.
 */
CARREL_PUBLIC int carrel_policy_load(const struct carrel_policy_options *options,
        struct carrel_policy **out, struct carrel_error *err);

CARREL_PUBLIC void carrel_policy_free(struct carrel_policy *policy); /* NULL is fine */

/* Every value in force with its maximum and where each came from, as one JSON object. */
CARREL_PUBLIC int carrel_policy_json(
        const struct carrel_policy *policy, char **out, struct carrel_error *err);

/*
 * SHA-256 of all values and bounds in force, in hex: equal for equal policies and the same
 * carrel, wherever they were written. It belongs to the policy.
 */
CARREL_PUBLIC const char *carrel_policy_hash(const struct carrel_policy *policy);

/* One value, and where it was written. */
struct carrel_policy_value {
    size_t size;
    const char *text;        /* as it was written; NULL where it is a list */
    const char *const *list; /* NULL-terminated; NULL where it is a text */
    const char *authority;   /* "built in" "repository" "user" "system" "environment" */
    const char *name;        /* of the file or variable; NULL: built in */
    unsigned line;           /* in that file, from 1; 0: none */
    unsigned column;
    const char *from; /* these in words: "/etc/carrel/policy.yaml:3:5" */
};

/* A key, and what is in force. It belongs to the policy. */
struct carrel_policy_key {
    size_t size;
    const char *name;                          /* "sandbox.limits.memory" */
    bool is_built_in;                          /* value and bounds equal the built-in ones */
    const struct carrel_policy_value *value;   /* NULL: none */
    const struct carrel_policy_value *maximum; /* the tightest of all files; NULL: none */
};

/* Visits every key; a non-zero answer ends the walk and is returned. */
CARREL_PUBLIC int carrel_policy_key_each(const struct carrel_policy *policy,
        int (*visit)(const struct carrel_policy_key *key, void *context), void *context,
        struct carrel_error *err);

/* One key. -ENOENT: there is no such key; the message suggests the nearest one. */
CARREL_PUBLIC int carrel_policy_key_get(const struct carrel_policy *policy, const char *name,
        const struct carrel_policy_key **out, struct carrel_error *err);

/* A file that was read. It belongs to the policy. */
struct carrel_policy_file {
    size_t size;
    const char *name;
    const char *authority; /* "repository" "user" "system" */
    bool gives_values;     /* else it has bounds only */
};

/* Visits the files, the least authority first; a non-zero answer ends the walk. */
CARREL_PUBLIC int carrel_policy_file_each(const struct carrel_policy *policy,
        int (*visit)(const struct carrel_policy_file *file, void *context), void *context,
        struct carrel_error *err);

/*
 * Whether the file is a valid policy, with each of its profiles. Other files do not matter.
 * Errors are those of carrel_policy_load().
 */
CARREL_PUBLIC int carrel_policy_check(const char *path, struct carrel_error *err);

/* The text of a commented policy file to start from. It is static. */
CARREL_PUBLIC const char *carrel_policy_template(void);

#ifdef __cplusplus
}
#endif
