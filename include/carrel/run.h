/* run.h - one program in its own sandbox, from start to result. */
#pragma once
#include <carrel/error.h>
#include <carrel/workspace.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

enum carrel_network {
    CARREL_NETWORK_DEFAULT, /* what the policy says; else none, where the runtime can */
    CARREL_NETWORK_NONE,    /* loopback only */
    CARREL_NETWORK_HOST,
};

struct carrel_mount {
    const char *source; /* on the host */
    const char *target; /* absolute, in the sandbox; "/workspace" is the working directory */
    bool is_writable;
};

enum carrel_journal {
    CARREL_JOURNAL_DEFAULT, /* what the policy says; else on */
    CARREL_JOURNAL_ON,
    CARREL_JOURNAL_OFF, /* refused where a policy requires a record */
};

enum carrel_store {
    CARREL_STORE_DEFAULT, /* what the policy says; else CARREL_STORE_ON_ERROR */
    CARREL_STORE_NEVER,
    CARREL_STORE_ON_ERROR,
    CARREL_STORE_ALWAYS,
};

/* Which ids of the host are in a sandbox that an ordinary user makes; root's has others. */
enum carrel_ids {
    CARREL_IDS_DEFAULT, /* what the policy says; else CARREL_IDS_OWN */
    CARREL_IDS_OWN,     /* the user's own and no other */
    CARREL_IDS_SUB,     /* also those that subuid(5) and subgid(5) give to the user */
};

/*
 * What to run. Start from CARREL_RUN_OPTIONS_INIT and set argv; everything else has a default,
 * from the policy or built in, and nothing here may pass a maximum of a policy (-EPERM).
 * A limit of 0 is the default value, held as well as this machine can; a limit that is given is
 * held for the whole sandbox or the run is refused, unless `best_effort` names it. The disk
 * limit of a workspace is polled, and can be exceeded by what is written between two looks.
 */
struct carrel_run_options {
    size_t size;             /* of this struct, filled in by the INIT macro */
    const char *const *argv; /* NULL-terminated */
    const char *const *env;  /* NULL-terminated "K=V", added to a minimal environment */
    const char *cwd;         /* NULL: the workspace */
    const char *policy;      /* a file; NULL: the one that is found from the current directory
                                upwards, the user's and the system's; "none": no file's values */
    const char *profile;     /* of that file; NULL: its top level */
    const char *runtime;     /* NULL: what the policy says, else "local" */
    const char *root;        /* another root filesystem; NULL: the host's programs */
    /*
     * The name of an image that is the root; NULL: what the policy says, else none; "none":
     * none. Its settings count where nothing is said here: variables come before `env`, its
     * working directory is that of a run without `cwd` and without anything at /workspace, its
     * user that of a run without one. argv follows its entrypoint; without argv its own command
     * does.
     */
    const char *image;
    bool has_no_entrypoint; /* argv is the whole command */
    const struct carrel_mount *mounts;
    size_t n_mounts;
    bool is_git_writable; /* .git at the top of a writable mount; else it is read-only */
    const struct carrel_workspace_options *workspace; /* NULL: none */
    enum carrel_network network;
    const char *hostname; /* NULL: "carrel" */
    enum carrel_ids ids;
    bool has_user; /* uid and gid below count */
    uid_t uid;
    gid_t gid;

    uint64_t timeout_ms;
    uint64_t memory_bytes;
    uint64_t disk_bytes; /* private writable space; inodes in proportion */
    uint64_t pids;
    uint64_t cpu_milli;      /* thousandths of a core */
    uint64_t files;          /* open files of one process */
    const char *require;     /* "seccomp,landlock": refuse to run without them */
    const char *best_effort; /* "memory,pids": a weaker substitute will do */

    enum carrel_journal journal;
    enum carrel_store store_code; /* whether code, result and output are kept as artifacts */
    uint64_t output_bytes;        /* of each stream, kept in the result */
    int stdin_fd;                 /* -1: the program reads end of file */
    int stdout_fd;                /* live copy, with back-pressure; -1: none */
    int stderr_fd;
    bool has_tty;        /* the program gets a terminal; its output is all on stdout */
    uint16_t rows, cols; /* of that terminal */
    /*
     * A signalfd(2), or -1. SIGWINCH gives the terminal the size of the one at stdin_fd; any
     * other signal cancels the run. Any other descriptor cancels it when it is readable, such
     * as an eventfd(2) or a pipe that the caller closes.
     */
    int signal_fd;
    uint64_t io_read_bytes; /* a second, from each disk; 0: no limit */
    uint64_t io_write_bytes;
};

#define CARREL_RUN_OPTIONS_INIT                                                                \
    {                                                                                          \
        .size = sizeof(struct carrel_run_options), .stdin_fd = -1, .stdout_fd = -1,            \
        .stderr_fd = -1, .signal_fd = -1                                                       \
    }

enum carrel_reason {
    CARREL_EXITED,
    CARREL_SIGNALED,
    CARREL_TIMEOUT,
    CARREL_MEMORY_LIMIT,
    CARREL_DISK_LIMIT,
    CARREL_PIDS_LIMIT,
    CARREL_CANCELLED,
    CARREL_DENIED,         /* ended by the system call filter */
    CARREL_INFRASTRUCTURE, /* ours, not the program's */
    CARREL_SYNTAX_ERROR,   /* carrel_python(): the code is none; nothing ran */
    CARREL_BLOCKED_IMPORT, /* carrel_python(): the rules forbid one; nothing ran */
};

struct carrel_run_result; /* opaque: read it with the functions below */

/*
 * Runs to the end. Returns 0 with *out set when there is a result, whatever the program did; a
 * negative errno when it could not be run. err->origin tells CARREL_FROM_PROGRAM (-ENOENT: not
 * in the sandbox, -EACCES or -ENOEXEC: cannot be executed) from everything else: -ENOTSUP a
 * protection or limit cannot be given (the message names it and how to get it), -EPERM a policy
 * forbids it, -EINVAL the options contradict themselves, others as they are.
 */
CARREL_PUBLIC int carrel_run(const struct carrel_run_options *options,
        struct carrel_run_result **out, struct carrel_error *err);

/*
 * A result for a run that did not happen, so that its caller has one form for both: the reason
 * is CARREL_INFRASTRUCTURE and its JSON says why. `output_bytes` as in the options.
 */
CARREL_PUBLIC int carrel_run_result_from_error(const struct carrel_error *why,
        uint64_t output_bytes, struct carrel_run_result **out, struct carrel_error *err);

CARREL_PUBLIC void carrel_run_result_free(struct carrel_run_result *result); /* NULL is fine */

CARREL_PUBLIC enum carrel_reason carrel_run_result_reason(
        const struct carrel_run_result *result);

/* "exited" "signaled" "timeout" ..., as in the JSON. */
CARREL_PUBLIC const char *carrel_reason_name(enum carrel_reason reason);

/* The key of the run, as carrel_runs_find() takes it; "": there was none. */
CARREL_PUBLIC const char *carrel_run_result_run(const struct carrel_run_result *result);

/* The exit status a shell would show: the program's own, 124 timeout, 125 ours, 128+n signal.
 */
CARREL_PUBLIC int carrel_run_result_status(const struct carrel_run_result *result);

/* One line for people about how it ended; empty when it simply exited. */
CARREL_PUBLIC const char *carrel_run_result_message(const struct carrel_run_result *result);

/* What the caller should know of how limits were held; empty when all is as asked. */
CARREL_PUBLIC const char *carrel_run_result_note(const struct carrel_run_result *result);

/*
 * What became of the workspace, for people: one or more lines about what changed, where it is
 * and what can be done with it; empty without a workspace. Names that the run chose are
 * escaped.
 */
CARREL_PUBLIC const char *carrel_run_result_summary(const struct carrel_run_result *result);

/* The whole result as one JSON object without a newline. The text belongs to the result. */
CARREL_PUBLIC const char *carrel_run_result_json(const struct carrel_run_result *result);

/*
 * The result as short text for a model: a status line, the value of a Python program, what was
 * written, the end of standard error; at most output_bytes in all. Freed with carrel_free().
 */
CARREL_PUBLIC int carrel_run_result_text(
        const struct carrel_run_result *result, char **text, struct carrel_error *err);

/* 0, or a negative errno: stdout_fd or stderr_fd did not take all that the program wrote. */
CARREL_PUBLIC int carrel_run_result_output_error(const struct carrel_run_result *result);

/* What the program wrote, capped at output_bytes (head, a marker line, tail). */
CARREL_PUBLIC const char *carrel_run_result_stdout(
        const struct carrel_run_result *result, size_t *len);
CARREL_PUBLIC const char *carrel_run_result_stderr(
        const struct carrel_run_result *result, size_t *len);

#ifdef __cplusplus
}
#endif
