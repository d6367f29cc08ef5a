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
#define CARREL_LEASE_MS (60U * 60 * 1000) /* the default lease */

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
    /*
     * NULL: it stays as soon as the call returns. Else this gets a descriptor, and it stays
     * once carrel_sandbox_received() was called with that. If the descriptor is closed without
     * that, also by the death of this process, the sandbox is destroyed.
     */
    int *receipt;
};

#define CARREL_SANDBOX_OPTIONS_INIT                                                            \
    {                                                                                          \
        .size = sizeof(struct carrel_sandbox_options)                                          \
    }

struct carrel_sandbox; /* a handle */

/*
 * Makes one. It stays when the handle is freed and when the calling process ends. Its keeper is
 * the program carrel, executed afresh: it has nothing of the caller's memory and descriptors,
 * and the caller may have threads. It is looked for beside the library, in the bin directory of
 * its prefix, and in PATH; the variable CARREL_PROGRAM names another. Errors as those of
 * carrel_run(); -EEXIST: the name is taken, -EAGAIN and -ETIMEDOUT: the policy's number of
 * sandboxes is reached.
 */
CARREL_PUBLIC int carrel_sandbox_create(const struct carrel_sandbox_options *options,
        struct carrel_sandbox **out, struct carrel_error *err);

/* Confirms that its id was delivered, and closes `receipt`. */
CARREL_PUBLIC void carrel_sandbox_received(int receipt);

/* `word`: its id, its name, or how its id begins. -ENOENT. */
CARREL_PUBLIC int carrel_sandbox_open(
        const char *word, struct carrel_sandbox **out, struct carrel_error *err);

CARREL_PUBLIC void carrel_sandbox_free(struct carrel_sandbox *sandbox); /* NULL is fine */

CARREL_PUBLIC const char *carrel_sandbox_id(const struct carrel_sandbox *sandbox);

/* Which limits are only enforced in part, one line for people; "": none. */
CARREL_PUBLIC const char *carrel_sandbox_note(const struct carrel_sandbox *sandbox);

/* --- programs; see also process.h --- */

/*
 * Runs a program in it to the end, as carrel_run() does. Of the options count argv, env, cwd,
 * timeout_ms, output_bytes, the user, the streams, the terminal and signal_fd; others are
 * refused (-EINVAL), since they were decided when the sandbox was made.
 */
CARREL_PUBLIC int carrel_sandbox_exec(struct carrel_sandbox *sandbox,
        const struct carrel_run_options *options, struct carrel_run_result **out,
        struct carrel_error *err);

/*
 * Starts a program that outlives the caller; the keeper keeps the head and the tail of what it
 * writes. With stdin_fd >= 0 (which is not read) it gets a stream that carrel_sandbox_attach()
 * can write to.
 */
CARREL_PUBLIC int carrel_sandbox_detach(struct carrel_sandbox *sandbox,
        const struct carrel_run_options *options, uint32_t *process, struct carrel_error *err);

/*
 * Follows a detached program to its end: its output so far, then new output. A signal at
 * signal_fd ends the call and not the program.
 */
CARREL_PUBLIC int carrel_sandbox_attach(struct carrel_sandbox *sandbox, uint32_t process,
        const struct carrel_run_options *options, struct carrel_run_result **out,
        struct carrel_error *err);

/* To a program that was started in it, by the number that carrel_sandbox_processes() has. */
CARREL_PUBLIC int carrel_sandbox_signal(
        struct carrel_sandbox *sandbox, uint32_t process, int signal, struct carrel_error *err);

/* What `carrel ps --json` prints. The text is freed with carrel_free(). */
CARREL_PUBLIC int carrel_sandbox_processes(
        struct carrel_sandbox *sandbox, char **json, struct carrel_error *err);

/* --- the sandbox itself --- */

/* What `carrel inspect` prints. The text is freed with carrel_free(). */
CARREL_PUBLIC int carrel_sandbox_inspect(
        struct carrel_sandbox *sandbox, char **json, struct carrel_error *err);

/* Gives it more time, from now on. 0: as it is; CARREL_NEVER: it does not end by itself. */
CARREL_PUBLIC int carrel_sandbox_renew(struct carrel_sandbox *sandbox, uint64_t lease_ms,
        uint64_t idle_ms, struct carrel_error *err);

CARREL_PUBLIC int carrel_sandbox_pause(
        struct carrel_sandbox *sandbox, struct carrel_error *err);
CARREL_PUBLIC int carrel_sandbox_resume(
        struct carrel_sandbox *sandbox, struct carrel_error *err);

/* New limits; 0: as it is. Start from CARREL_LIMITS_INIT. */
struct carrel_limits {
    size_t size;
    uint64_t memory_bytes;
    uint64_t cpu_milli;
    uint64_t pids;
    uint64_t io_read_bytes; /* only of a sandbox that was made with that limit */
    uint64_t io_write_bytes;
};

#define CARREL_LIMITS_INIT                                                                     \
    {                                                                                          \
        .size = sizeof(struct carrel_limits)                                                   \
    }

/* Up to the maximum that its policy allows. */
CARREL_PUBLIC int carrel_sandbox_update(struct carrel_sandbox *sandbox,
        const struct carrel_limits *limits, struct carrel_error *err);

/*
 * Ends it and everything in it; when it returns nothing is left but record and workspace. The
 * summary, for people, says what became of the workspace; NULL: it is not wanted.
 */
CARREL_PUBLIC int carrel_sandbox_destroy(
        struct carrel_sandbox *sandbox, char **summary, struct carrel_error *err);

/* Which to destroy. Start from CARREL_DESTROY_OPTIONS_INIT. */
struct carrel_destroy_options {
    size_t size;
    const char *const *words; /* NULL-terminated; NULL with is_all */
    bool is_all;              /* all of this user's */
    bool is_force;            /* kill the keeper of one that does not answer */
    /* Called for each that could not be destroyed; NULL: not wanted. */
    void (*failed)(const char *word, const struct carrel_error *why, void *context);
    void *context;
};

#define CARREL_DESTROY_OPTIONS_INIT                                                            \
    {                                                                                          \
        .size = sizeof(struct carrel_destroy_options)                                          \
    }

/* Destroys them in parallel. Continues after a failure and returns the first. */
CARREL_PUBLIC int carrel_sandbox_destroy_all(
        const struct carrel_destroy_options *options, char **summary, struct carrel_error *err);

/* --- finding them --- */

/* One living sandbox, or a request that waits. "" stands for what is not known. */
struct carrel_sandbox_info {
    size_t size;
    const char *id;
    const char *name;
    const char *state; /* "running" "paused" ..., "dead": its keeper was killed */
    const char *image;
    const char *root;
    const char *const *labels; /* "K=V", NULL-terminated */
    uint64_t age_ms;
    uint64_t lease_left_ms; /* CARREL_NEVER: it has none */
    uint64_t idle_left_ms;  /* CARREL_NEVER: it is in use, or has no such limit */
    uint32_t n_processes;   /* that were started in it and run */
    pid_t keeper;
    bool is_waiting; /* until the policy allows one more */
};

/* Which of them. Start from CARREL_SANDBOX_QUERY_INIT. */
struct carrel_sandbox_query {
    size_t size;
    const char *const *labels; /* "KEY=VALUE", or "KEY"; all must match; NULL: any */
    bool has_dead;             /* show the dead, too; else they are removed */
};

#define CARREL_SANDBOX_QUERY_INIT                                                              \
    {                                                                                          \
        .size = sizeof(struct carrel_sandbox_query)                                            \
    }

/* Shows each of this user's, oldest first; then those that wait, the next one first. */
CARREL_PUBLIC int carrel_sandbox_each(const struct carrel_sandbox_query *query,
        int (*visit)(const struct carrel_sandbox_info *info, void *context), void *context,
        struct carrel_error *err);

/* The same as JSON, with all that is known: what `carrel list --json` prints. */
CARREL_PUBLIC int carrel_sandbox_list(
        const struct carrel_sandbox_query *query, char **json, struct carrel_error *err);

/* --- snapshots and forks --- */

/*
 * Names its files as they are now, for carrel_sandbox_options.from. -EEXIST. *is_copied:
 * programs were running, so the files had to be copied; NULL: not wanted.
 */
CARREL_PUBLIC int carrel_sandbox_snapshot(struct carrel_sandbox *sandbox, const char *name,
        bool *is_copied, struct carrel_error *err);

/* What to fork. Start from CARREL_FORK_OPTIONS_INIT. */
struct carrel_fork_options {
    size_t size;
    uint32_t n;                /* how many */
    bool inherits_env;         /* programs get the variables of the original */
    const char *const *labels; /* NULL-terminated; NULL: those of the original */
    /*
     * Called for each when it is ready, with its id and its receipt (see
     * carrel_sandbox_options), which the callee confirms or closes; or when it failed, with the
     * reason and -1.
     */
    void (*ready)(
            const char *id, int receipt, const struct carrel_error *failure, void *context);
    void *context;
};

#define CARREL_FORK_OPTIONS_INIT                                                               \
    {                                                                                          \
        .size = sizeof(struct carrel_fork_options), .n = 1                                     \
    }

/*
 * Makes sandboxes that begin with the current files of this one. Processes and memory are not
 * forked. Continues after a failure and returns the first.
 */
CARREL_PUBLIC int carrel_sandbox_fork(struct carrel_sandbox *sandbox,
        const struct carrel_fork_options *options, struct carrel_error *err);

struct carrel_snapshot_info {
    size_t size;
    const char *name;
    const char *created; /* "2026-01-31T23:59:59.000000Z" */
    const char *from;    /* the sandbox; NULL: not known */
    const char *image;   /* NULL: the host's root */
    size_t n_layers;
    uint64_t bytes; /* of its topmost layer */
};

/* Shows each, sorted by name. */
CARREL_PUBLIC int carrel_snapshot_each(
        int (*visit)(const struct carrel_snapshot_info *info, void *context), void *context,
        struct carrel_error *err);

/* Removes one, and the layers that nothing else uses. -ENOENT. */
CARREL_PUBLIC int carrel_snapshot_remove(const char *name, struct carrel_error *err);

#ifdef __cplusplus
}
#endif
