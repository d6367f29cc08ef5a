/*
 * runtime.h - the port: what a sandbox is, independent of the runtime.
 *
 * A runtime creates sandboxes; a sandbox has processes; a process has streams. A one-shot run
 * is create, start, events until the exit, stop, free. A living sandbox is the same with more
 * starts in between. Adapters fill in struct runtime_ops; all other code calls the functions
 * below, which check arguments, answer -ENOTSUP for operations that an adapter lacks, and put
 * the adapter's name into errors.
 *
 * An error means that the runtime could not do its job. What the program did (exit status,
 * signal, limit) is returned as data.
 */
#pragma once
#include "base/auto.h"
#include "runtime/files.h"
#include "runtime/protection.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct carrel_error;

enum isolation { ISOLATION_NONE, ISOLATION_KERNEL, ISOLATION_VM };
const char *isolation_name(enum isolation isolation); /* "none" "kernel" "vm" */

/*
 * What a runtime, or one sandbox of it, has. Callers ask this instead of trying; the front
 * refuses a spec that needs more.
 */
enum can {
    CAN_MOUNT = 1,        /* directories of this host as mounts */
    CAN_OVERLAY = 2,      /* copy-on-write trees and private directories on this host's disk */
    CAN_DESCRIPTORS = 4,  /* a file that is opened in the sandbox is a descriptor of its file */
    CAN_HOST_PIDS = 8,    /* its processes have numbers on this host */
    CAN_IMAGE = 16,       /* images that the runtime itself keeps */
    CAN_BRIDGE = 32,      /* NETWORK_BRIDGE */
    CAN_START_EARLY = 64, /* ready within milliseconds: a start need not wait for it */
};

/* BRIDGE: a network of the runtime's own that reaches others through this host. */
enum network { NETWORK_NONE, NETWORK_HOST, NETWORK_BRIDGE };
/* For an ordinary user: its own id alone, or its subordinate ones as well; root has a range. */
enum id_source { IDS_OWN, IDS_SUB };
enum access { ACCESS_READ_ONLY, ACCESS_READ_WRITE };

/*
 * A copy-on-write tree. Changes are written to space/upper; the lower directories never change.
 * One upper may be in one sandbox at a time. A runtime need not sync: after an orderly end the
 * owner recreates space/work; a work directory that was used before is refused, because the
 * machine may have crashed meanwhile.
 */
struct sandbox_overlay {
    const char *const *lower; /* absolute paths on the host, topmost first; NULL-terminated.
                                 None at all, which
                                 `space` of a sandbox may have: an empty directory */
    const char *space;        /* absolute path of a directory on the host, which holds ...;
                                 NULL, of a root: in memory */
    const char *upper;        /* ... these two, by name */
    const char *work;
};

struct sandbox_mount {
    const char *source;   /* absolute path on the host; NULL with an overlay */
    const int *source_fd; /* it, open: what is mounted, whatever the path leads to by then;
                             NULL: the path is looked up, for a place that no program of any
                             sandbox can write to */
    const char *target;   /* absolute path in the sandbox */
    enum access access;
    const struct sandbox_overlay *overlay; /* NULL: the source itself is mounted */
};

enum limit {
    LIMIT_MEMORY,
    LIMIT_PIDS,
    LIMIT_CPU,
    LIMIT_DISK,
    LIMIT_FILES,
    LIMIT_IO_READ,
    LIMIT_IO_WRITE,
    LIMIT_COUNT,
    LIMIT_OPTIONAL = LIMIT_IO_READ, /* from here on 0 is a value: no limit */
};
#define LIMIT_BIT(l) (1U << (l))

const char *limit_name(enum limit limit); /* "memory" ... */

/* Reads "memory,pids" into a set of LIMIT_BITs. */
int limit_parse_set(const char *text, unsigned *set, struct carrel_error *err);

/*
 * What enforces a limit. NOTHING is only ever an answer to a limit that was not demanded.
 * POLLING is no runtime's answer: the maker of the sandbox measures, and ends it.
 */
enum limit_holder {
    HELD_BY_NOTHING,
    HELD_BY_RLIMIT,
    HELD_BY_FILESYSTEM,
    HELD_BY_CGROUP,
    HELD_BY_POLLING,
};
const char *limit_holder_name(enum limit_holder holder); /* "nothing" "rlimit" ... */

struct sandbox_limits {
    /* Bytes, processes, thousandths of a core, bytes, files; bytes per second of each disk. */
    uint64_t value[LIMIT_COUNT];
    unsigned demanded;    /* refuse if it cannot be enforced for the whole sandbox */
    unsigned best_effort; /* a weaker substitute is accepted; overrides `demanded` */
};

struct sandbox_spec {
    const char *id;     /* for names of kernel objects; one path component */
    const char *root;   /* root filesystem on the host; NULL: the host's own programs */
    const int *root_fd; /* it, open: a root that is another directory by then is refused; NULL:
                           the path is looked up */
    const char *image;  /* instead: one that the runtime has (CAN_IMAGE); NULL: none */
    /*
     * "KEY=VALUE" for this runtime alone, NULL-terminated; NULL: none. A key that it does not
     * list in its operations is refused.
     */
    const char *const *settings;
    /*
     * Where the private directories are kept: /tmp, the home and /workspace. NULL: in memory,
     * and removed with the sandbox. Else they are directories of this overlay, created if
     * missing and kept otherwise, so that the next sandbox with the same upper continues with
     * them. Not with `root_overlay`.
     */
    const struct sandbox_overlay *space;
    /*
     * Instead of `root`: the root itself is this overlay, and programs may write everywhere in
     * it. /tmp, home and /workspace are directories of it, created if missing; what it has at
     * /proc, /dev and /run is hidden. Its layers may be hostile: a link in the place of a
     * directory that a mount needs is refused, any other link stays inside the root. Without a
     * `space` changes are in memory, under the limit of the private directories, if the kernel
     * supports it (sandbox_has_memory_root()); else -ENOTSUP.
     */
    const struct sandbox_overlay *root_overlay;
    const struct sandbox_mount *mounts;
    size_t n_mounts;
    enum network network;
    const char *hostname;
    enum id_source ids; /* SUB: programs may be other users; -ENOTSUP if there are no ids */
    bool has_user;      /* else the adapter's ordinary user */
    uid_t uid;
    gid_t gid;
    struct sandbox_limits limits;
    bool stays;               /* many programs will be started in it: prepare what they share */
    uint64_t require;         /* set of PROTECT_BITs that must be in force, or create refuses */
    enum isolation isolation; /* that the sandbox must have at least, or create refuses */
};

struct process_spec {
    const char *const *argv; /* NULL-terminated; argv[0] is looked up in the PATH of `env` */
    const char *const *env;  /* NULL-terminated "K=V"; the whole environment */
    const char *cwd;         /* absolute, inside; NULL: the sandbox's workspace */
    bool has_stdin;          /* else it reads end of file at once */
    bool ends_sandbox;       /* when it exits, everything else in the sandbox is killed */
    bool has_tty;            /* one terminal instead of three streams */
    uint16_t rows, cols;     /* of the terminal; later sizes: sandbox_resize() */
    unsigned n_extra;        /* more streams, PROCESS_EXTRA at most; see struct process */
    bool has_user;           /* else the sandbox's ordinary user */
    uid_t uid;               /* as seen in the sandbox */
    gid_t gid;
};

#define PROCESS_EXTRA 2

/* A started process. The caller closes the descriptors (process_close). */
struct process {
    uint32_t id;  /* unique in its sandbox, never reused */
    int stdin_fd; /* -1: none. With a terminal, stdin_fd is it and stdout_fd a duplicate */
    int stdout_fd;
    int stderr_fd;                /* -1 with a terminal */
    int extra_fds[PROCESS_EXTRA]; /* the first is written to and read by the program as 3, the
                                     second is read and written by the program as 4 */
};
#define PROCESS_INIT                                                                           \
    (struct process)                                                                           \
    {                                                                                          \
        .stdin_fd = -1, .stdout_fd = -1, .stderr_fd = -1, .extra_fds = { -1, -1 }              \
    }
void process_close(struct process process);
DEFINE_AUTO(struct process, process_close)

/* Unknown values are USAGE_UNKNOWN. */
#define USAGE_UNKNOWN UINT64_MAX
struct sandbox_usage {
    uint64_t cpu_ms;
    uint64_t peak_memory_bytes; /* of the sandbox; without a cgroup, of its largest process */
    uint64_t peak_pids;
    uint64_t written_bytes; /* held in the private space, plus written to storage elsewhere */
    uint64_t oom_kills;     /* processes that the kernel killed for the memory limit */
    uint64_t pids_refused;  /* times a process or thread was refused for the pids limit */
    bool is_disk_full;      /* the private space had no byte or no inode left */
};
#define USAGE_INIT                                                                             \
    (struct sandbox_usage)                                                                     \
    {                                                                                          \
        .cpu_ms = USAGE_UNKNOWN, .peak_memory_bytes = USAGE_UNKNOWN,                           \
        .peak_pids = USAGE_UNKNOWN, .written_bytes = USAGE_UNKNOWN,                            \
        .oom_kills = USAGE_UNKNOWN, .pids_refused = USAGE_UNKNOWN                              \
    }

/* REFUSALS: only oom_kills and pids_refused, cheap enough for each start. */
enum usage_part { USAGE_ALL, USAGE_REFUSALS };

enum sandbox_event_kind {
    EVENT_NONE,   /* nothing to read now */
    EVENT_EXITED, /* a started process exited */
    EVENT_GONE,   /* the sandbox ended by itself: nothing in it runs any more, except LOST */
};

/* Why a sandbox ended by itself. */
enum gone_why {
    GONE_OWN,   /* its last process exited (ends_sandbox), or it was killed from outside */
    GONE_LEASE, /* see sandbox_set_lease() */
    GONE_IDLE,
    GONE_LOST, /* engine, node or connection is gone: what still runs is not known */
};

struct sandbox_event {
    enum sandbox_event_kind kind;
    uint32_t process;
    int wait_status;  /* as waitpid() gives it */
    bool is_with_all; /* it was killed because the sandbox ends by itself; EVENT_GONE follows */
    enum gone_why why; /* with EVENT_GONE */
};

/* A process of a sandbox, as it was a moment ago. */
struct sandbox_process {
    pid_t pid;          /* as seen on this host; 0 without CAN_HOST_PIDS */
    pid_t inner_pid;    /* as seen in the sandbox; the same if it has no pid namespace */
    pid_t inner_parent; /* 0 or 1: the runtime's own */
    uid_t uid;          /* as seen in the sandbox */
    uint32_t process;   /* the id that sandbox_start() gave it; 0: started by another one */
    char state;         /* as in proc(5): R S D T Z ... */
    uint64_t cpu_ms;
    uint64_t memory_bytes; /* resident */
    uint64_t begun_ns;     /* CLOCK_BOOTTIME */
    char comm[64];         /* the program's to choose, like ... */
    char command[512];     /* ... the arguments, separated by spaces; truncated at the end */
};

/*
 * Facts of a runtime about this machine and its user. Plain data, because it is sent through a
 * pipe when it is gathered as another user.
 */
struct health_fact {
    char name[24];
    char value[200];
};

struct health_gap {
    uint64_t set; /* PROTECT_BITs that are missing for this reason */
    char why[256];
    char remedy[320];
};

#define HEALTH_MAX_FACTS 8
#define HEALTH_MAX_GAPS 12
struct runtime_health {
    uint64_t works; /* PROTECT_BITs that worked when tried one by one */
    struct health_fact facts[HEALTH_MAX_FACTS];
    size_t n_facts;
    struct health_gap gaps[HEALTH_MAX_GAPS];
    size_t n_gaps;
};

struct runtime;
struct sandbox;

struct runtime_ops {
    const char *name;
    /* Another process has the sandbox: its errors have its runtime's name already, and others
     * may pause and resume it meanwhile. */
    bool is_proxy;
    enum isolation isolation;    /* of most of its sandboxes; each one has its own */
    unsigned can;                /* enum can; the same */
    const char *const *settings; /* keys of spec.settings, NULL-terminated; NULL: none */
    int (*create)(struct runtime *rt, const struct sandbox_spec *spec, struct sandbox **out,
            struct carrel_error *err);
    int (*start)(struct sandbox *box, const struct process_spec *spec, struct process *out,
            struct carrel_error *err);
    int (*next_event)(
            struct sandbox *box, struct sandbox_event *event, struct carrel_error *err);
    int (*signal)(struct sandbox *box, uint32_t process, int signal, struct carrel_error *err);
    /* Optional: NULL answers -ENOTSUP. */
    int (*terminate)(
            struct sandbox *box, uint32_t process, uint32_t grace_ms, struct carrel_error *err);
    /* Optional: NULL sets the size of the terminal that stdin_fd is. */
    int (*resize)(struct sandbox *box, const struct process *process, uint16_t rows,
            uint16_t cols, struct carrel_error *err);
    int (*stop)(struct sandbox *box, struct sandbox_usage *usage, struct carrel_error *err);
    void (*free)(struct sandbox *box);
    /* Optional: like stop, without waiting for the cleanup. NULL: stop is called. */
    int (*end)(struct sandbox *box, struct sandbox_usage *usage, struct carrel_error *err);
    /* Optional: waits until what create began is ready. NULL: create did all of it. */
    int (*ready)(
            struct sandbox *box, uint64_t deadline_ns, int cancel_fd, struct carrel_error *err);
    /* Optional: NULL answers -ENOTSUP. */
    int (*usage)(struct sandbox *box, enum usage_part part, struct sandbox_usage *usage,
            struct carrel_error *err);
    int (*file)(struct sandbox *box, const struct file_request *request,
            struct file_answer *answer, struct carrel_error *err);
    int (*ps)(struct sandbox *box, struct sandbox_process *out, size_t max,
            struct carrel_error *err);
    int (*pids)(struct sandbox *box, pid_t *pids, size_t max,
            struct carrel_error *err); /* with CAN_HOST_PIDS only */
    int (*pause)(struct sandbox *box, const char **by, struct carrel_error *err);
    int (*resume)(struct sandbox *box, struct carrel_error *err);
    int (*set_lease)(
            struct sandbox *box, uint64_t end_ns, uint64_t idle_ms, struct carrel_error *err);
    int (*update)(struct sandbox *box, const struct sandbox_limits *limits, unsigned which,
            struct carrel_error *err);
    int (*health)(struct runtime *rt, uint64_t missing, struct runtime_health *health,
            struct carrel_error *err);
    int (*sweep)(struct runtime *rt, struct carrel_error *err);
    void (*identity)(
            struct runtime *rt, const struct sandbox_spec *spec, uid_t *uid, gid_t *gid);
};

/* Embedded in the adapter's own struct. */
struct runtime {
    const struct runtime_ops *ops;
};

/* Embedded in the adapter's own struct; filled in by create. */
struct sandbox {
    const struct runtime_ops *ops;
    enum isolation isolation;
    unsigned can;         /* enum can */
    int event_fd;         /* readable when next_event has something; owned by the adapter */
    uint64_t protections; /* set of PROTECT_BITs in force */
    enum limit_holder held_by[LIMIT_COUNT];
    const char *workspace; /* default working directory, as seen by the program */
    const char *home;
    const char *user_name;
    const char *paused_by; /* "freezer" or "signals"; NULL: it is not paused */
    bool is_pause_unsure;  /* the last pause or resume failed, perhaps after its effect */
    uint64_t touched_ns; /* CLOCK_BOOTTIME; idle time counts from here while no process runs */
    bool is_lost;        /* its events have said GONE_LOST */
    bool is_ended;       /* no program runs any more, and none can be started */
    bool is_stopped;
};

/* What every adapter's create begins with: the operations, what they have, no descriptor. */
void sandbox_init(struct sandbox *box, const struct runtime_ops *ops);

/* Finds a runtime by name. The result is static: there is nothing to free. */
int runtime_find(const char *name, struct runtime **out, struct carrel_error *err);

/* Iterates over the runtimes: from 0 on, NULL after the last. */
struct runtime *runtime_at(size_t index);

const char *runtime_name(const struct runtime *rt);
enum isolation runtime_isolation(const struct runtime *rt);
unsigned runtime_can(const struct runtime *rt); /* enum can, of most of its sandboxes */

/*
 * Facts about this machine, and for the protections in `missing` the reason and a remedy.
 * `missing` is what a sandbox created just now lacked; everything, if none could be created:
 * then each part is tried separately, as far as possible, so that the answer names the cause.
 * Changes nothing.
 */
int runtime_health(struct runtime *rt, uint64_t missing, struct runtime_health *health,
        struct carrel_error *err);

/*
 * Removes what is left of sandboxes whose owner has exited; live ones are not touched. Returns
 * how many there were.
 */
int runtime_sweep(struct runtime *rt, struct carrel_error *err);

/*
 * The ids as which programs of a sandbox with the user of `spec` see themselves and the
 * caller's files.
 */
void runtime_identity(
        struct runtime *rt, const struct sandbox_spec *spec, uid_t *uid, gid_t *gid);

/*
 * Creates a sandbox that is ready for processes: every protection in box->protections is in
 * force, or the call fails and nothing is left. A limit in limits.demanded that cannot be
 * enforced, a protection in spec->require that is missing, or less isolation than
 * spec->isolation is -ENOTSUP with what is missing and how to get it.
 */
int sandbox_create(struct runtime *rt, const struct sandbox_spec *spec, struct sandbox **out,
        struct carrel_error *err);

/*
 * Whether a root overlay needs no directory to write to: user attributes in tmpfs, Linux 6.6.
 */
bool sandbox_has_memory_root(void);

/*
 * The same for a caller that starts a process at once: it may return while the sandbox is still
 * being created, and sandbox_start() then reports a failure. In either case no process runs
 * before the whole sandbox is in force.
 */
int sandbox_begin(struct runtime *rt, const struct sandbox_spec *spec, struct sandbox **out,
        struct carrel_error *err);

/*
 * Waits until what sandbox_begin() returned is ready. -ETIMEDOUT: not before `deadline_ns`
 * (clock_ns(); CLOCK_NEVER: none). -ECANCELED: `cancel_fd` is readable; it is not read; -1:
 * none. After either the caller may wait again, or free it. Any other failure is final.
 */
int sandbox_ready(
        struct sandbox *box, uint64_t deadline_ns, int cancel_fd, struct carrel_error *err);

/*
 * Starts a process. -ENOENT: no such program in the sandbox; -EACCES, -ENOEXEC: it exists, but
 * cannot be executed; -ENOTDIR: no such working directory; -EAGAIN: it is paused, or too many
 * run; -EPERM, -EINVAL: the sandbox cannot have such a user; anything else is the runtime's
 * failure.
 */
int sandbox_start(struct sandbox *box, const struct process_spec *spec, struct process *out,
        struct carrel_error *err);

/* Never blocks. */
int sandbox_next_event(
        struct sandbox *box, struct sandbox_event *event, struct carrel_error *err);

/*
 * Signals one process and its group; SANDBOX_ALL: every process except the runtime's own. A
 * process that has exited is not an error.
 */
#define SANDBOX_ALL 0
int sandbox_signal(struct sandbox *box, uint32_t process, int signal, struct carrel_error *err);

/*
 * Ends one process and its group: SIGTERM now, and SIGKILL after `grace_ms` to the rest of the
 * group, even if the process itself has exited by then. Does not wait.
 */
int sandbox_terminate(
        struct sandbox *box, uint32_t process, uint32_t grace_ms, struct carrel_error *err);

/* Gives the terminal of a process another size. -ENOTTY: it has none. */
int sandbox_resize(struct sandbox *box, const struct process *process, uint16_t rows,
        uint16_t cols, struct carrel_error *err);

/*
 * Kills everything in the sandbox at once and returns the final usage. When it returns no
 * process of the sandbox is left, whatever it did. A second call only fills in `usage` as
 * unknown.
 *
 * After GONE_LOST this and sandbox_end() return 0, with what is known of the usage: there is
 * nothing left that the caller could end. What still runs far away ends with its lease.
 */
int sandbox_stop(struct sandbox *box, struct sandbox_usage *usage, struct carrel_error *err);

/*
 * The same, but the cleanup of the empty sandbox may still be in progress when this returns:
 * its programs have exited, what they wrote is complete, the usage is final. For callers that
 * have other work meanwhile; sandbox_stop() afterwards waits for the rest.
 */
int sandbox_end(struct sandbox *box, struct sandbox_usage *usage, struct carrel_error *err);

/* Stops if necessary and frees. NULL is fine. Safe after any failure. */
void sandbox_free(struct sandbox *box);
DEFINE_AUTO(struct sandbox *, sandbox_free)

/* Usage while it runs. */
int sandbox_usage(struct sandbox *box, struct sandbox_usage *usage, struct carrel_error *err);

/* Only oom_kills and pids_refused, cheap enough for each start; the rest is unknown. */
void sandbox_refusals(struct sandbox *box, struct sandbox_usage *usage);

/*
 * Opens a file as the sandbox's user sees it, resolved inside: the host never follows a path
 * that the program controls. Returns a descriptor. `flags` as for open(2).
 */
int sandbox_open_file(struct sandbox *box, const char *path, int flags, mode_t mode,
        struct carrel_error *err);

/*
 * The pids on this host of the sandbox's processes, without the runtime's own; -ENOTSUP
 * without CAN_HOST_PIDS. Returns how many. The list is a snapshot: a process may have exited,
 * another may have started, and one that is reparented meanwhile may be missing or listed
 * twice. A caller that must miss none repeats the call until nothing new is listed. -E2BIG:
 * more than `max`.
 */
int sandbox_pids(struct sandbox *box, pid_t *pids, size_t max, struct carrel_error *err);

/*
 * The processes, with their details. One that exits meanwhile is left out. Returns how many;
 * -E2BIG: more than `max`.
 */
int sandbox_ps(
        struct sandbox *box, struct sandbox_process *out, size_t max, struct carrel_error *err);

/*
 * Stops every process until sandbox_resume(): when this returns, none runs. Nothing can be
 * started meanwhile (-EAGAIN); files can be opened, and stopping works. box->paused_by says
 * how: "signals" is visible to the programs, and resuming also continues those that had stopped
 * themselves. Pausing a paused sandbox, or resuming a running one, does nothing. After either
 * failed, both ask the sandbox again: it may be in the other state.
 */
int sandbox_pause(struct sandbox *box, struct carrel_error *err);
int sandbox_resume(struct sandbox *box, struct carrel_error *err);

/*
 * The sandbox itself kills everything in it, and reports why (EVENT_GONE), when CLOCK_BOOTTIME
 * passes `end_ns`, or when for `idle_ms` no process of sandbox_start() was running and no
 * request came. 0: never. Each call replaces the previous values, and counts as a request. It
 * works without the owner, and while paused.
 */
int sandbox_set_lease(
        struct sandbox *box, uint64_t end_ns, uint64_t idle_ms, struct carrel_error *err);

/*
 * Changes the limits in `which` (LIMIT_BITs of memory, cpu, pids, io): all or none. -ENOTSUP:
 * not enforced for the whole sandbox, or not changeable; -EBUSY: more memory is in use than the
 * new limit.
 */
int sandbox_update(struct sandbox *box, const struct sandbox_limits *limits, unsigned which,
        struct carrel_error *err);
