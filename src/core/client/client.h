/*
 * client.h - living sandboxes, as the processes that use them see them.
 *
 * A client finds the sandbox in the registry and talks to its keeper. <carrel/sandbox.h> has
 * the public part; this is what the command line needs besides. The remote is a struct sandbox
 * like any other: programs are started in it and files reached as in a sandbox of this process,
 * but the keeper does the work and records it.
 */
#pragma once
#include "base/auto.h"
#include "base/buf.h"
#include "core/keeper/wire.h"
#include "registry/registry.h"
#include "runtime/runtime.h"
#include <carrel/sandbox.h>
#include <stdbool.h>
#include <stdint.h>

struct remote;
struct file_access;

struct carrel_sandbox {
    struct registry_entry *entry;
    struct remote *box; /* connection to the keeper; see remote.h */
};
DEFINE_AUTO(struct carrel_sandbox *, carrel_sandbox_free)

/* Public functions take a NULL error; what they call does not. */
#define ERR_OR_IGNORED(err) ((err) ? (err) : &(struct carrel_error){ 0 })

/* Opens the sandbox `word` for file operations only. */
int client_file_access(const char *word, struct file_access *access, struct carrel_error *err);

#define CLIENT_NOTE_MAX 1024
#define CLIENT_LEASE_MS KEEPER_LEASE_MS

/*
 * Creates a sandbox with a keeper of its own that outlives this call. On return the sandbox is
 * ready and can be found by `id`. Waits while the policy's number of sandboxes is reached.
 * `note`, of CLIENT_NOTE_MAX bytes, is for the limits that are only enforced in part; NULL: not
 * wanted.
 *
 * The caller owns *receipt. The sandbox stays once client_received() gets it; if it is closed
 * without that, also by the caller's death, the id was not delivered and the keeper destroys
 * the sandbox.
 */
int client_create(const struct carrel_sandbox_options *options, char *note,
        char id[static REGISTRY_WORD_MAX + 1], int *receipt, struct carrel_error *err);

/* Confirms that the id was delivered. Closes `receipt`. */
void client_received(int receipt);

/* Starts a program that outlives the caller. *process is for client_attach(). */
int client_detach(struct carrel_sandbox *sandbox, const struct carrel_run_options *options,
        uint32_t *process, struct carrel_error *err);

/* Which limits are only enforced in part; "": none. */
void client_note(const struct carrel_sandbox *sandbox, char note[static CLIENT_NOTE_MAX]);

/* Follows a detached program: its output so far, then new output, until it ends. */
int client_attach(struct carrel_sandbox *sandbox, uint32_t process,
        const struct carrel_run_options *options, struct carrel_run_result **out,
        struct carrel_error *err);

int client_signal(
        struct carrel_sandbox *sandbox, uint32_t process, int signal, struct carrel_error *err);

/* The keeper's JSON. */
int client_processes(
        struct carrel_sandbox *sandbox, struct buf *json, struct carrel_error *err);
int client_inspect(struct carrel_sandbox *sandbox, struct buf *json, struct carrel_error *err);

/* Values of 0 stay as they are. */
int client_update(struct carrel_sandbox *sandbox, const uint64_t limit[static LIMIT_COUNT],
        struct carrel_error *err);

/* carrel_sandbox_snapshot(). *is_copied: programs were running, so files had to be copied. */
int client_snapshot(struct carrel_sandbox *sandbox, const char *name, bool *is_copied,
        struct carrel_error *err);

struct client_fork {
    uint32_t n;
    bool inherits_env;         /* programs get the variables of the original */
    const char *const *labels; /* NULL: those of the original */
    /* Called for each fork when it is ready or has failed. The callee owns `receipt`, as that
     * of client_create(); -1 with a failure. */
    void (*ready)(
            void *context, const char *id, int receipt, const struct carrel_error *failure);
    void *context;
};

/*
 * Creates `n` sandboxes from the current files of this one. Processes and memory are not
 * forked. Continues after a failure and returns the first.
 */
int client_fork(struct carrel_sandbox *sandbox, const struct client_fork *fork,
        struct carrel_error *err);

/* carrel_sandbox_destroy(). `summary` gets what became of the workspace. */
int client_destroy(
        struct carrel_sandbox *sandbox, struct buf *summary, struct carrel_error *err);
