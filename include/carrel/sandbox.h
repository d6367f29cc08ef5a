/*
 * sandbox.h - sandboxes that stay: made once, used many times, by any process of the user.
 *
 * Each has a keeper, a process of its own; there is no central one. A handle is a connection to
 * it: it never means another sandbox than the one it was opened for, and calls through it fail
 * with -ESRCH when that has ended. A handle is for one thread at a time.
 */
#pragma once
#include <carrel/run.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CARREL_NEVER UINT64_MAX

/* What a new one is to be. Start from CARREL_SANDBOX_OPTIONS_INIT. */
struct carrel_sandbox_options {
    size_t size;                          /* of this struct, filled in by the INIT macro */
    const struct carrel_run_options *run; /* NULL: all defaults. Its argv and streams do not
                                             count; its timeout is that of each program */
    const char *name;                     /* unique among the living; NULL: none */
    const char *const *labels;            /* "K=V", NULL-terminated; NULL: none */
    const char *from;                     /* a snapshot to begin with; NULL: none */
    uint64_t lease_ms; /* it ends by itself; 0: after an hour, CARREL_NEVER: not */
    uint64_t idle_ms;  /* and when it was not used for so long; 0: not */
};

#define CARREL_SANDBOX_OPTIONS_INIT                                                            \
    {                                                                                          \
        .size = sizeof(struct carrel_sandbox_options)                                          \
    }

struct carrel_sandbox; /* a handle */

/*
 * Makes one and opens it. It stays when the handle is freed and when the calling process ends.
 * Its keeper is the program carrel, executed afresh: it has nothing of the caller's memory and
 * descriptors, and the caller may have threads. It is found beside the library, in the bin
 * directory of its prefix, or in PATH; the variable CARREL_PROGRAM names another. Errors as
 * those of carrel_run(); -EEXIST: the name is taken, -EAGAIN and -ETIMEDOUT: the policy's
 * number of sandboxes is reached.
 */
CARREL_PUBLIC int carrel_sandbox_create(const struct carrel_sandbox_options *options,
        struct carrel_sandbox **out, struct carrel_error *err);

/* `word`: its id, its name, or how its id begins. -ENOENT. */
CARREL_PUBLIC int carrel_sandbox_open(
        const char *word, struct carrel_sandbox **out, struct carrel_error *err);

CARREL_PUBLIC void carrel_sandbox_free(struct carrel_sandbox *sandbox); /* NULL is fine */

CARREL_PUBLIC const char *carrel_sandbox_id(const struct carrel_sandbox *sandbox);

/*
 * Runs a program in it to the end, as carrel_run() does. Of the options count argv, env, cwd,
 * timeout_ms, output_bytes, the user, the streams, the terminal and signal_fd; others are
 * refused (-EINVAL), since they were decided when the sandbox was made.
 */
CARREL_PUBLIC int carrel_sandbox_exec(struct carrel_sandbox *sandbox,
        const struct carrel_run_options *options, struct carrel_run_result **out,
        struct carrel_error *err);

/* Gives it more time, from now on. 0: as it is; CARREL_NEVER: it does not end by itself. */
CARREL_PUBLIC int carrel_sandbox_renew(struct carrel_sandbox *sandbox, uint64_t lease_ms,
        uint64_t idle_ms, struct carrel_error *err);

CARREL_PUBLIC int carrel_sandbox_pause(
        struct carrel_sandbox *sandbox, struct carrel_error *err);
CARREL_PUBLIC int carrel_sandbox_resume(
        struct carrel_sandbox *sandbox, struct carrel_error *err);

/* Names its files as they are now, for carrel_sandbox_options.from. -EEXIST. */
CARREL_PUBLIC int carrel_sandbox_snapshot(
        struct carrel_sandbox *sandbox, const char *name, struct carrel_error *err);

/* Ends it and everything in it; when it returns nothing is left but record and workspace. */
CARREL_PUBLIC int carrel_sandbox_destroy(
        struct carrel_sandbox *sandbox, struct carrel_error *err);

#ifdef __cplusplus
}
#endif
