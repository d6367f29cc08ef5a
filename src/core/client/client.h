/*
 * client.h - sandboxes that stay, seen from those who use them.
 *
 * A client finds the sandbox in the registry and talks to its keeper. What it gets is a struct
 * sandbox like any other: programs are started in it and files reached as in one that this
 * process made; the keeper does the work and writes it down.
 */
#pragma once
#include "base/auto.h"
#include "base/buf.h"
#include "registry/registry.h"
#include "runtime/runtime.h"
#include <carrel/run.h>
#include <stdbool.h>
#include <stdint.h>

struct carrel_error;
struct remote;
struct file_access;

struct living {
    struct registry_entry *entry;
    struct remote *box; /* the way to the keeper; see distant.h */
};
void living_free(struct living *sandbox); /* NULL is fine; the sandbox stays */
DEFINE_AUTO(struct living *, living_free)

/* `word`: its id, its name, or how its id begins. -ENOENT: there is none. */
int living_open(const char *word, struct living **out, struct carrel_error *err);

/* The same for file verbs alone. */
int client_file_access(const char *word, struct file_access *access, struct carrel_error *err);

/* What a new one is to be. */
struct client_request {
    const struct carrel_run_options *options; /* its argv and streams are not looked at */
    const char *name;                         /* NULL: none */
    const char *const *labels;                /* "K=V", NULL-terminated; NULL: none */
    const char *from;                         /* a snapshot to begin with; NULL: none */
    char *note;                               /* CLIENT_NOTE_MAX bytes, filled in when it
                                                 stands: limits that are held by less than
                                                 they should be; NULL: nobody asks */
    uint64_t lease_ms;                        /* 0: none */
    uint64_t idle_ms;                         /* 0: none */
    /* None of all this lies where exec put words and variables: the keeper overwrites these. */
    bool is_apart;
};

#define CLIENT_NOTE_MAX 256
#define CLIENT_LEASE_MS (60U * 60 * 1000) /* what commands ask for when nobody says */

/*
 * Makes one, with a keeper of its own that outlives this call. When it returns the sandbox
 * stands and can be found by `id`. Waits where the policy's number of sandboxes is reached.
 *
 * It stays once *receipt, which the caller owns, is given to client_received(). Until then it
 * ends when that is closed, so also with the caller: of no sandbox the id is lost.
 */
int client_create(const struct client_request *request, char id[static REGISTRY_WORD_MAX + 1],
        int *receipt, struct carrel_error *err);

/* The id is where it was wanted. Closes `receipt`. */
void client_received(int receipt);

/*
 * Runs a program in it to the end. Of the options count argv, env, cwd, timeout_ms,
 * output_bytes, the user, the streams, the terminal and signal_fd; the rest was decided when
 * the sandbox was made. Errors as those of carrel_run().
 */
int living_exec(struct living *sandbox, const struct carrel_run_options *options,
        struct carrel_run_result **out, struct carrel_error *err);

/* Starts one that stays when the caller goes. *process is for client_attach(). */
int client_detach(struct living *sandbox, const struct carrel_run_options *options,
        uint32_t *process, struct carrel_error *err);

/* Which limits are held by less than they should be; "": none. */
void client_note(const struct living *sandbox, char note[static CLIENT_NOTE_MAX]);

/* Goes on with such a one: what it wrote so far, then all that comes, to its end. */
int client_attach(struct living *sandbox, uint32_t process,
        const struct carrel_run_options *options, struct carrel_run_result **out,
        struct carrel_error *err);

int client_signal(
        struct living *sandbox, uint32_t process, int signal, struct carrel_error *err);

/* JSON of the keeper's. */
int client_processes(struct living *sandbox, struct buf *json, struct carrel_error *err);
int client_inspect(struct living *sandbox, struct buf *json, struct carrel_error *err);

/* 0: as it is; LIVING_NO_TIME: none any more. */
#define LIVING_NO_TIME UINT64_MAX
int living_renew(
        struct living *sandbox, uint64_t lease_ms, uint64_t idle_ms, struct carrel_error *err);
int living_pause(struct living *sandbox, struct carrel_error *err);
int living_resume(struct living *sandbox, struct carrel_error *err);

/* Values of 0 stay as they are. */
int client_update(struct living *sandbox, const uint64_t limit[static LIMIT_COUNT],
        struct carrel_error *err);

/*
 * Names what was written so far, so that others can begin with it. *is_copied: programs were
 * running, so a copy was made; else nothing was copied.
 */
int client_snapshot(
        struct living *sandbox, const char *name, bool *is_copied, struct carrel_error *err);

/* What forks are to be. */
struct client_fork {
    uint32_t n;
    bool inherits_env;         /* the variables that programs of the first one get */
    const char *const *labels; /* NULL: as the first one has */
    /* Called for each of them, when it stands or could not be made. `receipt` is then the
     * callee's, as that of client_create(); -1 with a failure. */
    void (*ready)(
            void *context, const char *id, int receipt, const struct carrel_error *failure);
    void *context;
};

/*
 * Makes `n` sandboxes like this one, on what was written in it so far. Processes and memory are
 * not forked. Goes on after a failure and returns the first.
 */
int client_fork(
        struct living *sandbox, const struct client_fork *fork, struct carrel_error *err);

/*
 * Ends it, and returns when nothing is left of it but its record and its workspace. `summary`
 * gets what became of that.
 */
int client_destroy(struct living *sandbox, struct buf *summary, struct carrel_error *err);
