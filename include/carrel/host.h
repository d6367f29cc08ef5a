/* host.h - this machine: which protections work, a self-test, and what crashes left. */
#pragma once
#include <carrel/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- health: lists end with NULL and are never NULL ---- */

enum carrel_health_state {
    CARREL_HEALTH_UNKNOWN, /* could not be tried */
    CARREL_HEALTH_WORKS,
    CARREL_HEALTH_MISSING,
};

struct carrel_health_protection {
    size_t size;
    const char *name;              /* "seccomp" */
    const char *meaning;           /* one line for people */
    enum carrel_health_state root; /* for runs of root */
    enum carrel_health_state rootless;
};

struct carrel_health_fact {
    size_t size;
    const char *name; /* "kernel" */
    const char *value;
};

/* Protections that are missing for one reason. */
struct carrel_health_gap {
    size_t size;
    const char *const *protections;
    const char *why;
    const char *remedy;
};

struct carrel_health_limit {
    size_t size;
    const char *name;    /* "memory" */
    const char *held_by; /* "cgroup" "rlimit" "filesystem" "polling" "nothing" */
};

/* How one kind of user fares. */
struct carrel_health_user {
    size_t size;
    const char *name; /* "root" "rootless" */
    bool is_known;    /* this user was tried; else `error` says why not */
    bool is_able;     /* a default run works; else `error` says why not */
    uid_t uid;
    const char *error; /* "": none */
    const struct carrel_health_fact *const *facts;
    const struct carrel_health_gap *const *gaps;
    const struct carrel_health_limit *const *limits; /* of a default run, where it works */
};

struct carrel_health {
    size_t size;
    const char *version;                     /* of carrel */
    const struct carrel_health_user *caller; /* `root` or `rootless` */
    const struct carrel_health_user *root;
    const struct carrel_health_user *rootless;
    const struct carrel_health_protection *const *protections;
};

/*
 * Creates sandboxes to find out, as the caller and, where that is root, also as an ordinary
 * user; takes a tenth of a second and leaves nothing behind. The program carrel, executed
 * afresh, does this. A machine on which nothing works is an answer, not an error.
 */
CARREL_PUBLIC int carrel_host_health(struct carrel_health **out, struct carrel_error *err);

/* The same as one JSON object; `health` must be what carrel_host_health() gave. */
CARREL_PUBLIC int carrel_health_json(
        const struct carrel_health *health, char **out, struct carrel_error *err);

CARREL_PUBLIC void carrel_health_free(struct carrel_health *health); /* NULL is fine */

/* ---- self-test ---- */

enum carrel_test_outcome { CARREL_TEST_PASSED, CARREL_TEST_FAILED, CARREL_TEST_SKIPPED };

struct carrel_test_info {
    size_t size;
    const char *group; /* "basics" "limits" "escapes" "after" */
    const char *name;
    enum carrel_test_outcome outcome;
    const char *seen; /* what was seen, or why it was skipped; safe on a terminal */
    uint64_t duration_ms;
};

/* Start from CARREL_TEST_OPTIONS_INIT; everything has a default. */
struct carrel_test_options {
    size_t size;         /* of this struct, filled in by the INIT macro */
    const char *runtime; /* NULL: "local" */
};

#define CARREL_TEST_OPTIONS_INIT                                                               \
    {                                                                                          \
        .size = sizeof(struct carrel_test_options)                                             \
    }

/*
 * Runs small programs, exceeds each limit and tries to escape: takes a few seconds, and the
 * attempts are harmless even where they succeed. `visit` is called after each test; a non-zero
 * answer ends the walk and is returned. That a test failed is an answer, not an error. The
 * program carrel, executed afresh, does this.
 */
CARREL_PUBLIC int carrel_host_test(const struct carrel_test_options *options,
        int (*visit)(const struct carrel_test_info *info, void *context), void *context,
        struct carrel_error *err);

/* ---- cleanup ---- */

struct carrel_cleanup_runtime {
    size_t size;
    const char *name;
    unsigned sandboxes; /* removed: their processes, groups, locks */
    const char *error;  /* NULL: all went well */
};

/* A directory of the user's in which an interrupted apply was undone or completed. */
struct carrel_cleanup_mended {
    size_t size;
    const char *top;
    bool is_folder; /* without git */
};

/* What was removed. Lists end with NULL and are never NULL. */
struct carrel_cleanup {
    size_t size;
    unsigned sandboxes;  /* of all runtimes */
    unsigned entries;    /* of living sandboxes whose keeper was killed */
    unsigned workspaces; /* half-made or half-removed ones that were completed */
    unsigned checkouts;  /* half-made, and unused for a month */
    unsigned layers;     /* half-made, and unused */
    unsigned caches;     /* unused for a month */
    const struct carrel_cleanup_runtime *const *runtimes;
    const struct carrel_cleanup_mended *const *mended;
};

/*
 * Removes what killed runs left, never finished work or living sandboxes (for these, see
 * carrel_sandbox_destroy_all()); a second call finds nothing. *out may be
 * set after a failure, too: one part that fails does not stop the others. The first failure is
 * returned.
 */
CARREL_PUBLIC int carrel_host_cleanup(struct carrel_cleanup **out, struct carrel_error *err);

CARREL_PUBLIC void carrel_cleanup_free(struct carrel_cleanup *cleanup); /* NULL is fine */

#ifdef __cplusplus
}
#endif
