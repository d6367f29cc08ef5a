/*
 * policy.h - what a run may do: read from files of known authority before the run, checked
 * once, never changed afterwards.
 *
 * One file gives the values; every file of a higher authority gives bounds. Flags override the
 * environment, the environment overrides the file, the file overrides the built-in values; and
 * nothing exceeds a maximum.
 */
#pragma once
#include "base/auto.h"
#include "base/json.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct carrel_error;

/* Every key of a policy file; keys.c holds one row for each. */
enum policy_key {
    POLICY_ENABLED,           /* sandbox.enabled: number is 0 or 1 */
    POLICY_TYPE,              /* sandbox.type: text, the runtime's name */
    POLICY_FALLBACK,          /* sandbox.fallback: list of runtimes */
    POLICY_MINIMUM_ISOLATION, /* sandbox.minimum_isolation: number, as enum policy_isolation */
    POLICY_NETWORK,           /* sandbox.network: number, 0 none, 1 host */
    POLICY_REQUIRE,           /* sandbox.require: list of protections */
    POLICY_BEST_EFFORT,       /* sandbox.best_effort: list of limits */
    POLICY_IDS,               /* sandbox.ids: number, 0 own, 1 sub */
    POLICY_HOSTNAME,          /* sandbox.hostname: text */
    POLICY_IMAGE,             /* sandbox.image: text; unset: none */
    POLICY_TIMEOUT,           /* sandbox.limits.timeout: milliseconds */
    POLICY_CPU,               /* sandbox.limits.cpu: thousandths of a core */
    POLICY_MEMORY,            /* sandbox.limits.memory: bytes */
    POLICY_DISK,              /* sandbox.limits.disk: bytes */
    POLICY_PIDS,              /* sandbox.limits.pids */
    POLICY_FILES,             /* sandbox.limits.files */
    POLICY_IO_READ,           /* sandbox.limits.io_read: bytes a second; unset: no limit */
    POLICY_IO_WRITE,          /* sandbox.limits.io_write: the same */
    POLICY_MAX_CONCURRENT,    /* sandbox.limits.max_concurrent: sandboxes that live at once */
    POLICY_MAX_QUEUED,        /* sandbox.limits.max_queued: that wait for a place; may be 0 */
    POLICY_QUEUE_TIME,        /* sandbox.limits.queue_time: milliseconds */
    POLICY_MOUNTS_ALLOW,      /* sandbox.mounts.allow: list of "PATH[:ro|rw]" */
    POLICY_ENV_ALLOW,         /* sandbox.environment.allow: list of NAME or PREFIX* */
    POLICY_ENV_PASS,          /* sandbox.environment.pass: the same, variables to pass on */
    POLICY_ENV_SET,           /* sandbox.environment.set: list of "NAME=VALUE" */
    POLICY_WORKSPACE,         /* workspace.enabled */
    POLICY_WORKSPACE_HISTORY, /* workspace.history: number, 0 cut, 1 full */
    POLICY_WORKSPACE_TREE,    /* workspace.tree: text: auto, overlay, copy */
    POLICY_WORKSPACE_DIRTY,   /* workspace.dirty */
    POLICY_WORKSPACE_INCLUDE, /* workspace.include: list of patterns */
    POLICY_WORKSPACE_SETUP,   /* workspace.setup: text */
    POLICY_WORKSPACE_SETUP_KEYS, /* workspace.setup_keys: list */
    POLICY_ON_SUCCESS,           /* workspace.on_success: text */
    POLICY_ON_FAILURE,           /* workspace.on_failure: text */
    POLICY_PYTHON,               /* python.interpreter: text */
    POLICY_IMPORTS_MODE,         /* python.imports.mode: number, as enum policy_imports */
    POLICY_IMPORTS_BLOCK,        /* python.imports.block: list of modules */
    POLICY_IMPORTS_ALLOW,        /* python.imports.allow: list of modules; unset: all */
    POLICY_ALLOW_TRUSTED,        /* python.allow_trusted: whether --trusted counts */
    POLICY_OUTPUT,               /* output.max: bytes of each stream in the result */
    POLICY_OUTPUT_FILE,          /* output.file_max: bytes of each stream kept in a file */
    POLICY_JOURNAL,              /* journal.enabled */
    POLICY_JOURNAL_REQUIRED,     /* journal.required: --journal off is refused */
    POLICY_JOURNAL_FSYNC,        /* journal.fsync: text: never, end, always */
    POLICY_JOURNAL_SIGN,         /* journal.sign */
    POLICY_JOURNAL_KEY,          /* journal.key: text, a file; unset: the user's own */
    POLICY_JOURNAL_MAX,          /* journal.max_bytes of one run */
    POLICY_STORE_CODE,           /* artifacts.store_code: number, as enum policy_store */
    POLICY_ARTIFACTS_BYTES,      /* artifacts.max_bytes of all runs */
    POLICY_ARTIFACTS_AGE,        /* artifacts.max_age: milliseconds */
    POLICY_MONITOR_MEMORY,       /* monitor.memory: per cent of the limit worth a warning */
    POLICY_MONITOR_CPU,          /* monitor.cpu */
    POLICY_MONITOR_PIDS,         /* monitor.pids */
    POLICY_MONITOR_DISK,         /* monitor.disk */
    POLICY_PRICE_CURRENCY,       /* prices.currency: text */
    POLICY_PRICE_RUN,            /* prices.run: billionths */
    POLICY_PRICE_CPU,            /* prices.cpu_second: billionths */
    POLICY_PRICE_MEMORY,         /* prices.memory_gb_second: billionths */
    POLICY_KEYS
};

enum policy_isolation { POLICY_ISOLATION_NONE, POLICY_ISOLATION_KERNEL, POLICY_ISOLATION_VM };
enum policy_imports { POLICY_IMPORTS_OFF, POLICY_IMPORTS_WARN, POLICY_IMPORTS_BLOCKED };
enum policy_store { POLICY_STORE_NEVER, POLICY_STORE_ON_ERROR, POLICY_STORE_ALWAYS };

/* From the lowest to the highest: a bound of one binds those before it. */
enum policy_authority {
    POLICY_BUILT_IN,
    POLICY_OF_REPOSITORY,  /* found beside the code: may only tighten */
    POLICY_OF_USER,        /* the user's own file, or one that was named by --policy */
    POLICY_OF_SYSTEM,      /* /etc/carrel/policy.yaml */
    POLICY_OF_ENVIRONMENT, /* a variable of the caller's */
};

/* Where a value was written. */
struct policy_position {
    enum policy_authority authority;
    const char *name; /* of the file or variable; NULL: built in */
    unsigned line;    /* from 1; 0: none */
    unsigned column;
};

struct policy_value {
    bool is_set;             /* false: no value */
    uint64_t number;         /* amounts, choices and booleans */
    const char *text;        /* text, and how a number was written */
    const char *const *list; /* NULL-terminated; NULL unless the key is a list */
    struct policy_position position;
};

struct policy;

struct policy_request {
    const char *file;    /* --policy: this file and no search; "none": built-in values */
    const char *profile; /* --profile; NULL: the file's top level */
    const char *cwd;     /* where the search upward begins; NULL: the current directory */
    const char *const *environment; /* the caller's variables; NULL: none */
    const char *user_file;          /* NULL: ~/.config/carrel/policy.yaml by `environment` */
    const char *system_file;        /* NULL: /etc/carrel/policy.yaml */
};

/*
 * Finds, reads and joins. Errors begin with FILE:LINE:COLUMN if there is one, name the key, say
 * what was expected, and for a misspelt key suggest the nearest valid one.
 */
int policy_load(
        const struct policy_request *request, struct policy **out, struct carrel_error *err);
void policy_free(struct policy *policy); /* NULL is fine */
DEFINE_AUTO(struct policy *, policy_free)

/* The built-in values only: for programs that carrel runs for itself. */
int policy_built_in(struct policy **out, struct carrel_error *err);

/* The value in force, unless a flag says otherwise. Never NULL; see is_set. */
const struct policy_value *policy_get(const struct policy *policy, enum policy_key key);

/* The tightest maximum of all files; is_set is false if there is none. */
const struct policy_value *policy_maximum(const struct policy *policy, enum policy_key key);

/*
 * Whether a flag may ask for this amount or choice; `flag` ("--memory 8G") appears in the
 * refusal beside the position of the maximum. -EPERM.
 */
int policy_check_number(const struct policy *policy, enum policy_key key, uint64_t number,
        const char *flag, struct carrel_error *err);

/*
 * The same for an item that lists must allow: a variable's name for POLICY_ENV_ALLOW, an
 * absolute path for POLICY_MOUNTS_ALLOW (`is_writable` counts there). Every existing list must
 * allow it; without any list everything is allowed.
 */
int policy_check_item(const struct policy *policy, enum policy_key key, const char *item,
        bool is_writable, const char *flag, struct carrel_error *err);

/* The isolation of a runtime; -1: unknown runtime. */
int policy_runtime_isolation(const char *runtime);

const char *policy_key_name(enum policy_key key); /* "sandbox.limits.memory" */

/* "built in", "environment SANDBOX_TYPE", "/etc/carrel/policy.yaml:3:5". */
const char *policy_position_text(
        const struct policy_position *position, char *text, size_t size);

/* Whether value and bounds of the key equal the built-in ones, wherever they were written. */
bool policy_is_built_in(const struct policy *policy, enum policy_key key);

struct policy_file {
    const char *name;
    enum policy_authority authority;
    bool gives_values; /* else it has bounds only */
};

/* The files that were read, the least authority first; false after the last. */
bool policy_file_at(const struct policy *policy, size_t index, struct policy_file *out);
const char *policy_authority_name(enum policy_authority authority); /* "repository" */

/* Every value in force with its maximum and where each came from, as one JSON object. */
void policy_write_json(const struct policy *policy, struct json *json);

/*
 * SHA-256 of all values and bounds in force, in hex: equal for equal policies and the same
 * carrel, wherever they were written.
 */
const char *policy_hash(const struct policy *policy);

/*
 * Whether the bytes are a valid policy file, with each of its profiles; `name` appears in
 * messages. Other files do not matter. carrel_policy_check() reads the file first.
 */
int policy_check(const char *text, size_t len, const char *name, struct carrel_error *err);
