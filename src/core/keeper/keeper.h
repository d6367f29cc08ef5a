/*
 * keeper.h - the process that owns a living sandbox.
 *
 * There is one for each. It made the sandbox, holds its journal, its workspace and its place in
 * the registry, watches its disk, and does what clients ask for. It has one thread and one
 * loop; nothing that a client or a program does makes it wait for them. When it dies, however
 * that happens, init ends the sandbox; when the sandbox ends, it writes down why, removes what
 * is left and goes.
 */
#pragma once
#include "base/clock.h"
#include "core/result/capture.h"
#include "core/run/session.h"
#include "core/worktree/ground.h"
#include "runtime/runtime.h"
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

struct carrel_error;
struct carrel_run_options;
struct keeper_message;
struct registry_entry;

#define KEEPER_MAX_MS (INT64_MAX / 1000000) /* as str_parse_duration(); it would overflow */
#define KEEPER_MAX_CLIENTS 512
#define KEEPER_MAX_PROCESSES 1024     /* running, or ended and not yet attached to */
#define KEEPER_MAX_ENDED 64           /* of the latter */
#define KEEPER_MAX_HOLDERS 64         /* clients that were let go and have files */
#define KEEPER_KEPT_BYTES (64U << 10) /* of each stream of a detached process */

struct keeper_client {
    uint64_t number; /* they are numbered as they come */
    int sock;        /* -1: free */
    int events;      /* where ends are reported; -1: it has not said hello */
    bool has_file;   /* it was given a descriptor of the sandbox, and may have it still */
};

struct keeper_process {
    uint32_t number;   /* of this start, for clients and in the journal; 0: free */
    uint32_t id;       /* as the sandbox has it, while it runs */
    int client;        /* who hears of its end; -1: nobody */
    bool is_detached;  /* it stays when the client goes */
    bool is_over_disk; /* it was ended for the disk limit */
    bool is_ending;    /* it was told to end */
    bool is_over_time; /* because its time was over */
    bool has_ended;
    bool is_reported;
    int wait_status;
    uint64_t begun_ns;
    uint64_t ended_ns;
    uint64_t timeout_ms;
    uint64_t deadline_ns; /* when we end it; somewhat later where its client should have */
    uint64_t oom_before;  /* what the sandbox had counted when it was started */
    uint64_t pids_before;
    uint64_t oom_kills; /* since then; USAGE_UNKNOWN until it has ended */
    uint64_t pids_refused;
    struct process streams; /* ours, of a detached one */
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
    KEEPER_UNCLAIMED, /* whoever asked for it went before they could tell its id */
};

struct keeper {
    struct session session;
    struct registry_entry *entry;
    const char *name; /* "": none */
    const char *const *labels;
    const struct ground_base *base; /* layers to begin with; NULL: none */
    int *locks;                     /* locks of these: another's, until it has its own */
    size_t n_borrowed_locks;
    uint64_t lease_ms;             /* 0: none */
    uint64_t idle_ms;              /* 0: none */
    uint64_t lease_end_ns;         /* CLOCK_BOOTTIME; 0: none */
    struct sandbox_limits changed; /* since it was made; 0: not */
    bool is_apart; /* what it was asked for lies elsewhere than words and variables of exec */
    char created[CLOCK_STAMP];
    uint64_t created_ns; /* by the clock of the lease, which does not rest with the machine */
    bool is_paused;
    uint64_t next_accept_ns; /* not before */
    uint64_t next_publish_ns;
    uint64_t rest_ns; /* when memory is given back */
    bool is_changed;  /* what the registry shows is out of date */
    enum keeper_end end;
    int destroyer; /* the client that waits for the end; -1: none */
    int signal_fd;
    int receipt;  /* says whether somebody has the id, see struct keeper_ready; -1: they do */
    bool is_full; /* the disk limit was reached: nothing is started until there is room */
    struct sandbox_usage before; /* of sandboxes that this one was made again after */
    uint32_t n_starts;
    uint64_t n_came; /* clients, ever */
    struct keeper_client *clients;
    size_t n_clients; /* slots ever used */
    size_t client_room;
    int holders[KEEPER_MAX_HOLDERS]; /* pidfds */
    size_t n_holders;
    bool is_held; /* by more than these: for good */
    struct pollfd *watch;
    size_t watch_room;
    struct keeper_process *processes;
    size_t n_processes; /* slots ever used */
    size_t process_room;
};

/* --- keeper_caller.c --- */

/* Nothing of the caller's stays but what the sandbox is made of. */
int keeper_leave_caller(struct keeper *keeper, struct carrel_error *err);

/* --- keeper_serve.c --- */

/* Does what the client asks for, if it asked; one that is gone is let go. */
void keeper_serve(struct keeper *keeper, size_t client);
/* The limits that were changed: a sandbox that is made again, or forked, has them too. */
void keeper_fill_limits(const struct keeper *keeper, struct carrel_run_options *options);

/* --- keeper_client.c --- */

/* Takes the one who has connected, if there is one. */
void keeper_accept(struct keeper *keeper);
void keeper_drop_client(struct keeper *keeper, size_t client);

/* Whether somebody outside may have a file of the sandbox open. */
bool keeper_is_open_outside(struct keeper *keeper);

/* --- keeper_process.c --- */

int keeper_start(struct keeper *keeper, size_t client, struct keeper_message *request,
        const int *fds, int n_fds, struct carrel_error *err);

/* To the program and its group. -ESRCH: no such one is running. */
int keeper_signal(struct keeper *keeper, uint32_t number, int signal, struct carrel_error *err);

/* The same, for good: what is left of it and its group after a while is killed. */
void keeper_terminate(struct keeper *keeper, uint32_t number);

/* The one that clients know by this number; NULL: none. */
struct keeper_process *keeper_find_process(struct keeper *keeper, uint32_t number);

/* One has ended: it is written down, and told to its client. */
int keeper_on_exit(
        struct keeper *keeper, const struct sandbox_event *event, struct carrel_error *err);

/* Tells clients what they could not be told before. True: one still has no room. */
bool keeper_report(struct keeper *keeper);

/* The client is gone: what it started and did not detach ends. */
void keeper_leave(struct keeper *keeper, size_t client);

/* When the next one must end; CLOCK_NEVER: none. Ends those whose time is over. */
uint64_t keeper_next_deadline(const struct keeper *keeper);
void keeper_enforce(struct keeper *keeper);

/* The disk limit is reached: every program is ended, the sandbox and its files stay. */
void keeper_kill_programs(struct keeper *keeper);

/* -ENOSPC: it was reached, and nobody has made room since. */
int keeper_check_room(struct keeper *keeper, struct carrel_error *err);

unsigned keeper_count_running(const struct keeper *keeper);
void keeper_process_free(struct keeper_process *process);

/* --- keeper_detached.c --- */

int keeper_attach(struct keeper *keeper, size_t client, const struct keeper_message *request,
        struct carrel_error *err);

/* Keeps what is in the pipes of a process that nobody is attached to: 0 stdout, 1 stderr. */
void keeper_drain(struct keeper_process *process, int stream);

/* Adds the streams to look at; returns how many. */
size_t keeper_watch_streams(struct keeper *keeper, struct pollfd *watch, size_t max);
void keeper_take_output(struct keeper *keeper, const struct pollfd *watch, size_t n);

/* --- keeper_seal.c --- */

/* What a sandbox had written at one moment. */
struct keeper_sealed {
    struct ground_base base;    /* of the places of its own */
    struct layer copy;          /* the topmost of them, where it is a copy */
    struct layer worktree_copy; /* the same of its workspace */
    bool is_used;               /* something lies on them, or names them */
};
void keeper_sealed_finish(struct keeper_sealed sealed);
DEFINE_AUTO(struct keeper_sealed, keeper_sealed_finish)
#define KEEPER_SEALED_INIT                                                                     \
    {                                                                                          \
        .copy = LAYER_INIT, .worktree_copy = LAYER_INIT                                        \
    }

/*
 * What was written so far becomes layers that never change. Where nothing runs in the sandbox
 * it is made again over them, in a moment; else it is halted while copies are made.
 */
int keeper_seal(struct keeper *keeper, struct keeper_sealed *out, struct carrel_error *err);
int keeper_snapshot(
        struct keeper *keeper, const char *name, bool *is_copied, struct carrel_error *err);

/* --- keeper_fork.c --- */

/*
 * Starts `n` keepers of sandboxes like this one, on what was written so far. Returns a
 * socket from which their struct keeper_ready come, one for each.
 */
int keeper_fork(struct keeper *keeper, const struct keeper_message *request,
        const char *const *labels, struct carrel_error *err);

/* --- keeper_text.c --- */

struct buf;
struct json;
void keeper_write_record(const struct keeper *keeper, struct buf *out);
int keeper_write_processes(struct keeper *keeper, struct buf *out, struct carrel_error *err);
void keeper_write_state(struct keeper *keeper, struct buf *out);

/* What it used since it was created: what it says now, and what was before. */
void keeper_add_usage(const struct keeper *keeper, struct sandbox_usage *usage);

/* --- keeper.c --- */

/*
 * Makes the sandbox, lives as long as it does and ends with it. `stage` has its permit, `entry`
 * its place; `report` gets one struct keeper_ready with its id: it stands and can be found, or
 * why not. Returns the exit status of the process.
 */
int keeper_main(struct keeper *keeper, const char *id, int report);

/* What others can read of it without asking; again when that has changed. */
int keeper_publish_record(const struct keeper *keeper, struct carrel_error *err);

/* CLOCK_BOOTTIME; 0: something runs in it, or it may be idle for ever. */
uint64_t keeper_idle_since(const struct keeper *keeper);

/* What the sandbox reports, if it does. */
int keeper_take_event(struct keeper *keeper, struct carrel_error *err);
