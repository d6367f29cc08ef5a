/*
 * keeper.h - the process that owns a living sandbox.
 *
 * There is one for each sandbox. It makes the sandbox, holds its journal, its workspace and its
 * entry in the registry, polls its disk usage, and serves clients. It has one thread and one
 * loop, and never blocks on a client or a program. When the keeper is killed, init ends the
 * sandbox; when the sandbox ends, the keeper records why, removes what is left and exits.
 */
#pragma once
#include "base/clock.h"
#include "base/loop.h"
#include "core/record/recorder_file.h"
#include "core/result/capture.h"
#include "core/run/pace.h"
#include "core/run/session.h"
#include "core/worktree/layers.h"
#include "runtime/runtime.h"
#include <stdbool.h>
#include <stdint.h>

struct carrel_error;
struct carrel_run_options;
struct keeper_message;
struct registry_entry;

#define KEEPER_MAX_MS (INT64_MAX / 1000000) /* as str_parse_duration(): more overflows */
#define KEEPER_MAX_CLIENTS 512
#define KEEPER_MAX_PROCESSES 1024     /* running, or ended and not yet attached to */
#define KEEPER_MAX_ENDED 64           /* of the latter */
#define KEEPER_MAX_HOLDERS 64         /* disconnected clients that have files */
#define KEEPER_KEPT_BYTES (64U << 10) /* of each stream of a detached process */

/* What the loop watches for a slot of the lists below, which move when they grow. */
struct keeper_source {
    struct loop_io io;
    struct keeper *keeper;
    size_t slot;
    int stream; /* of a process: 0 stdout, 1 stderr */
};

struct keeper_client {
    uint64_t number; /* in the order of connections */
    int sock;        /* -1: free */
    struct keeper_source *source;
    int events;    /* where ends are reported; -1: it has not said hello */
    bool has_file; /* it may have a descriptor of a file of the sandbox */
};

struct keeper_process {
    uint32_t number;   /* of this start, for clients and in the journal; 0: free */
    uint32_t id;       /* as the sandbox has it, while it runs */
    int client;        /* to which its end is reported; -1: none */
    bool is_detached;  /* it continues when the client exits */
    bool is_over_disk; /* it was ended for the disk limit */
    bool is_ending;    /* it was told to end */
    bool is_over_time; /* for its timeout */
    bool has_ended;
    bool is_reported;
    int wait_status;
    uint64_t begun_ns;
    uint64_t ended_ns;
    uint64_t timeout_ms;
    uint64_t deadline_ns; /* when the keeper ends it; later where its client does so first */
    uint64_t oom_before;  /* the sandbox's counter when it was started */
    uint64_t pids_before;
    uint64_t oom_kills; /* since then; USAGE_UNKNOWN until it has ended */
    uint64_t pids_refused;
    struct process streams; /* of a detached process */
    struct keeper_source *sources[2];
    struct capture kept[2];
    char *program;
};

enum keeper_end {
    KEEPER_GOES_ON,
    KEEPER_DESTROYED,
    KEEPER_LEASE,
    KEEPER_IDLE,
    KEEPER_SIGNALLED,
    KEEPER_LOST,
    KEEPER_OUT_OF_REACH,
    KEEPER_UNCLAIMED, /* the creator exited before it delivered the id */
};

struct keeper {
    struct session session;
    struct registry_entry *entry;
    const char *name; /* "": none */
    const char *const *labels;
    const struct layer_list *base; /* layers to begin with; NULL: none */
    int *borrowed_locks; /* of the parent keeper's layers, until this one has its own locks */
    size_t n_borrowed_locks;
    uint64_t lease_ms;             /* 0: none */
    uint64_t idle_ms;              /* 0: none */
    uint64_t lease_end_ns;         /* CLOCK_BOOTTIME; 0: none */
    struct sandbox_limits changed; /* since it was made; 0: not */
    char *cwd; /* where it was asked for, for the requests of forks; NULL: unknown */
    char created[CLOCK_STAMP];
    uint64_t created_ns; /* CLOCK_BOOTTIME, as the lease */
    bool is_paused;
    uint64_t next_accept_ns; /* not before */
    uint64_t next_publish_ns;
    uint64_t rest_ns; /* when memory is trimmed */
    bool is_changed;  /* what the registry shows is out of date */
    enum keeper_end end;
    int destroyer; /* the client that waits for the end; -1: none */
    int signal_fd;
    int receipt;                 /* see struct keeper_ready; -1: the id was delivered */
    struct sandbox_usage before; /* of the sandboxes that this one replaced */
    uint32_t n_starts;
    uint64_t n_came; /* clients that ever connected */
    struct keeper_client *clients;
    size_t n_clients; /* slots ever used */
    size_t client_room;
    int holders[KEEPER_MAX_HOLDERS]; /* pidfds */
    size_t n_holders;
    bool is_held; /* by processes that cannot be watched: for good */
    struct loop loop;
    struct loop_io on_listen, on_box, on_signal, on_receipt;
    struct loop_timer wake;
    struct recorder_below below; /* not recorded yet */
    struct pace pace;            /* of the output that is kept */
    uint64_t kept_rest_ns;       /* until then none is read; 0: it is */
    struct keeper_process *processes;
    size_t n_processes; /* slots ever used */
    size_t process_room;
};

/* --- caller.c --- */

/* Detaches from the caller: streams, command line, environment, directory, signals. */
int keeper_leave_caller(struct keeper *keeper, struct carrel_error *err);

/* --- serve.c --- */

/* Serves a request of the client, if there is one; drops it if it has disconnected. */
void keeper_serve(struct keeper *keeper, size_t client);
/* Limits that were changed also apply to a sandbox that is made again, and to forks. */
void keeper_fill_limits(const struct keeper *keeper, struct carrel_run_options *options);

/* --- clients.c --- */

/* Accepts a connection, if there is one. */
void keeper_accept(struct keeper *keeper);
void keeper_drop_client(struct keeper *keeper, size_t client);

/* Whether a client, or one that was, may have a file of the sandbox open. */
bool keeper_is_open_outside(struct keeper *keeper);

/* --- process.c --- */

int keeper_start(struct keeper *keeper, size_t client, struct keeper_message *request,
        const int *fds, int n_fds, struct carrel_error *err);

/* To the program and its process group. -ESRCH: it is not running. */
int keeper_signal(struct keeper *keeper, uint32_t number, int signal, struct carrel_error *err);

/* SIGTERM, and after a grace period SIGKILL for what is left of its process group. */
void keeper_terminate(struct keeper *keeper, uint32_t number);

/* The one that clients know by this number; NULL: none. */
struct keeper_process *keeper_find_process(struct keeper *keeper, uint32_t number);

/* A process has ended: it is recorded, and reported to its client. */
int keeper_on_exit(
        struct keeper *keeper, const struct sandbox_event *event, struct carrel_error *err);

/* Sends reports that found no room before. True: some still found none. */
bool keeper_report(struct keeper *keeper);

/* The client has disconnected: processes that it started and did not detach end. */
void keeper_leave(struct keeper *keeper, size_t client);

/* The next timeout (CLOCK_NEVER: none), and ending the processes that are over theirs. */
uint64_t keeper_next_deadline(const struct keeper *keeper);
void keeper_enforce(struct keeper *keeper);

/* The disk limit is exceeded: every program is killed, the sandbox and its files stay. */
void keeper_kill_programs(struct keeper *keeper);

/* -ENOSPC: the disk limit is exceeded, and files must be removed first. */
int keeper_check_disk(struct keeper *keeper, struct carrel_error *err);

unsigned keeper_count_running(const struct keeper *keeper);
void keeper_process_free(struct keeper_process *process);

/* --- detached.c --- */

int keeper_attach(struct keeper *keeper, size_t client, const struct keeper_message *request,
        struct carrel_error *err);

/* Keeps the output of a process to which no client is attached: 0 stdout, 1 stderr. */
void keeper_drain(struct keeper_process *process, int stream);

/* Watches the output of processes to which no client is attached, and no other. -ENOMEM. */
int keeper_watch_streams(struct keeper *keeper, struct carrel_error *err);

/* --- seal.c --- */

/* What a sandbox had written at one moment. */
struct keeper_sealed {
    struct layer_list files;    /* layers of the private files */
    struct layer_list worktree; /* layers of the workspace, if there is one */
    struct layer files_copy;    /* the topmost of `files`, where it had to be copied */
    struct layer worktree_copy;
    bool is_used; /* another sandbox or a snapshot has the copies */
};
void keeper_sealed_finish(struct keeper_sealed sealed);
DEFINE_AUTO(struct keeper_sealed, keeper_sealed_finish)
#define KEEPER_SEALED_INIT                                                                     \
    {                                                                                          \
        .files_copy = LAYER_INIT, .worktree_copy = LAYER_INIT                                  \
    }

/*
 * Makes sealed layers of the files written so far. If nothing runs in the sandbox, it is made
 * again on top of them, in milliseconds; else it is paused while copies are made.
 */
int keeper_seal(struct keeper *keeper, struct keeper_sealed *out, struct carrel_error *err);
int keeper_snapshot(
        struct keeper *keeper, const char *name, bool *is_copied, struct carrel_error *err);

/* --- fork.c --- */

/*
 * Starts keepers of sandboxes like this one, with the files written so far. Returns a socket
 * that delivers one struct keeper_ready for each.
 */
int keeper_fork(struct keeper *keeper, const struct keeper_message *request,
        const char *const *labels, struct carrel_error *err);

/* --- text.c --- */

struct buf;
struct json;
void keeper_write_record(const struct keeper *keeper, struct buf *out);
int keeper_write_processes(struct keeper *keeper, struct buf *out, struct carrel_error *err);
void keeper_write_state(struct keeper *keeper, struct buf *out);

/* Adds the usage of the sandboxes that this one replaced. */
void keeper_add_usage(const struct keeper *keeper, struct sandbox_usage *usage);

/* --- keeper.c --- */

/*
 * Makes the sandbox and serves it until it ends. The session has its permit, `entry` is
 * claimed; `report` gets one struct keeper_ready when the sandbox is ready and can be found by
 * its id, or has failed. Returns the exit status of the process.
 */
int keeper_main(struct keeper *keeper, const char *id, int report);

/* Publishes the part of its record that the registry shows. */
int keeper_publish_record(const struct keeper *keeper, struct carrel_error *err);

/* CLOCK_BOOTTIME; 0: something runs in it, or it has no idle timeout. */
uint64_t keeper_idle_since(const struct keeper *keeper);

/* A source of the slot that calls `call`; NULL: out of memory. */
struct keeper_source *keeper_source_new(
        struct keeper *keeper, size_t slot, int stream, loop_io_call *call);
void keeper_source_free(struct keeper_source *source); /* NULL is fine */

/* Handles an event of the sandbox, if there is one. */
int keeper_take_event(struct keeper *keeper, struct carrel_error *err);
