/*
 * client.h - living sandboxes, as the processes that use them see them.
 *
 * A client finds the sandbox in the registry and talks to its keeper. <carrel/sandbox.h> is the
 * public part; this is what the files of this folder share. The remote is a struct sandbox like
 * any other: programs are started in it and files reached as in a sandbox of this process, but
 * the keeper does the work and records it.
 */
#pragma once
#include "base/auto.h"
#include "core/keeper/wire.h"
#include "registry/registry.h"
#include <carrel/sandbox.h>
#include <stdatomic.h>

struct remote;
struct file_access;

#define CLIENT_NOTE_MAX RESULT_NOTE_MAX

struct carrel_sandbox {
    char id[REGISTRY_WORD_MAX + 1];
    char note[CLIENT_NOTE_MAX];
    atomic_bool is_in_task; /* a task uses it: see core/task */
    struct remote *box;     /* connection to the keeper; NULL: none yet, see client_connect() */
};
DEFINE_AUTO(struct carrel_sandbox *, carrel_sandbox_free)

/* Makes sure that the handle has its connection. */
int client_connect(struct carrel_sandbox *sandbox, struct carrel_error *err);

/* Opens the sandbox `word` for file operations only. */
int client_file_access(const char *word, struct file_access *access, struct carrel_error *err);

/*
 * carrel_sandbox_create(), which ends with -ECANCELED as soon as `cancel` is readable (-1:
 * never).
 */
int client_create(const struct carrel_sandbox_options *options, int cancel,
        struct carrel_sandbox **out, struct carrel_error *err);
