/*
 * create.c - a new living sandbox: its entry in the registry, then its keeper.
 *
 * Requests are checked here, in the caller's process; the sandbox itself is made by the keeper,
 * which owns it from the start. The keeper is a grandchild, so the caller need not reap it.
 */
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "core/client/client.h"
#include "core/keeper/claim.h"
#include "core/keeper/keeper.h"
#include "core/keeper/wire.h"
#include "core/request/image_root.h"
#include "core/run/run.h"
#include "core/worktree/from_snapshot.h"
#include "policy/policy.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static int check_request(const struct client_request *request, struct carrel_error *err)
{
    if (request->name) {
        int r = name_check_id(request->name, "name", err);
        if (r < 0)
            return r;
        if (strncmp(request->name, "S-", 2) == 0)
            return err_set(err, -EINVAL,
                    "name '%s': names must not begin with S-, which is for ids", request->name);
    }
    return keeper_check_labels(request->labels, err);
}

/* Closes all descriptors that the keeper does not need. */
static NO_INLINE void close_others(const struct keeper *keeper, int report)
{
    const struct registry_entry *e = keeper->entry;
    const struct image_root *root = keeper->session.root;
    int keep[8 + IMAGE_MAX_LAYERS] = { 0, 1, 2, e->top, e->dir, e->status_fd, e->listen_fd,
        report };
    size_t n = 8;

    for (size_t i = 0; root && i < root->image->n_layers && i < IMAGE_MAX_LAYERS; i++)
        keep[n++] = root->image->locks[i];
    fd_close_all_but(keep, n);
}

static _Noreturn void become_keeper(struct keeper *keeper, int report)
{
    (void)setsid();
    close_others(keeper, report); /* before the fork: it sizes the table of descriptors */
    pid_t pid = fork();
    if (pid != 0)
        _exit(pid < 0);
    _exit(keeper_main(keeper, keeper->entry->id, report));
}

/* Waits for the keeper's report. */
static NO_INLINE int receive(int report, char *note, int *receipt, struct carrel_error *err)
{
    struct keeper_ready ready = { 0 };

    if (keeper_receive_ready(report, &ready, receipt) < 0)
        return err_set(
                err, -ECHILD, "the keeper of the sandbox ended before the sandbox was ready");
    if (ready.error.code < 0)
        *err = ready.error;
    else if (note)
        (void)snprintf(note, CLIENT_NOTE_MAX, "%s", ready.note);
    return ready.error.code;
}

static int launch(struct keeper *keeper, char *note, int *receipt, struct carrel_error *err)
{
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return err_set_errno(err, -errno, "socketpair");
    AUTO(fd_close) int read_end = ends[0];
    pid_t pid = fork();
    if (pid == 0) {
        fd_close(fd_steal(&read_end));
        become_keeper(keeper, ends[1]);
    }
    int code = -errno;
    fd_close(ends[1]);
    if (pid < 0)
        return err_set_errno(err, code, "fork");
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return receive(read_end, note, receipt, err);
}

int client_create(const struct client_request *request, char id[static REGISTRY_WORD_MAX + 1],
        int *receipt, struct carrel_error *err)
{
    static const char *const no_program[] = { NULL };
    struct carrel_run_options options = *request->options;
    AUTO(policy_free) struct policy *policy = NULL;
    AUTO(from_snapshot_free) struct from_snapshot *from = NULL;

    options.argv = no_program;
    int r = check_request(request, err);
    if (r == 0 && request->from)
        r = from_snapshot_find(request->from, &options, &from, err);
    if (r == 0)
        r = run_load_policy(&options, &policy, err);
    if (r < 0)
        return r;
    const struct run_request run = {
        .options = &options,
        .policy = policy,
        .origin = from && from->ws ? &from->origin : NULL,
    };
    const struct claim_request claim = { .name = request->name, .policy = policy };
    struct keeper *keeper = calloc(1, sizeof(*keeper));
    if (!keeper)
        return err_set_errno(err, -ENOMEM, "keeper");
    keeper->name = request->name ? request->name : "";
    keeper->labels = request->labels;
    keeper->base = from ? &from->snapshot.layers : NULL;
    keeper->lease_ms = request->lease_ms;
    keeper->idle_ms = request->idle_ms;
    keeper->is_apart = request->is_apart;
    r = session_init(&keeper->session, &run, err);
    if (r == 0)
        r = session_permit(&keeper->session, err);
    if (r == 0)
        r = keeper_claim(&claim, id, &keeper->entry, err);
    if (r == 0)
        r = launch(keeper, request->note, receipt, err);
    registry_entry_free(keeper->entry);
    session_finish(&keeper->session);
    free(keeper);
    return r < 0 ? session_not_the_program(r, err) : 0;
}

int carrel_sandbox_create(const struct carrel_sandbox_options *options,
        struct carrel_sandbox **out, struct carrel_error *err)
{
    static const struct carrel_run_options defaults = CARREL_RUN_OPTIONS_INIT;
    const struct carrel_run_options *run = options->run ? options->run : &defaults;
    char id[REGISTRY_WORD_MAX + 1];

    err = ERR_OR_IGNORED(err);
    if (options->size != sizeof(*options) || run->size != sizeof(*run))
        return err_set(err, -EINVAL,
                "the options have a different size in this library; start from "
                "CARREL_SANDBOX_OPTIONS_INIT and CARREL_RUN_OPTIONS_INIT");
    const struct client_request request = {
        .options = run,
        .name = options->name,
        .labels = options->labels,
        .from = options->from,
        .lease_ms = options->lease_ms == CARREL_NEVER ? 0
                    : options->lease_ms               ? options->lease_ms
                                                      : CLIENT_LEASE_MS,
        .idle_ms = options->idle_ms,
    };
    AUTO(fd_close) int receipt = -1;
    int r = client_create(&request, id, &receipt, err);
    if (r == 0)
        r = carrel_sandbox_open(id, out, err);
    if (r == 0)
        client_received(fd_steal(&receipt));
    return r;
}
