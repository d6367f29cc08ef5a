/*
 * fork.c - sandboxes that begin with the files of another one.
 *
 * The keeper process is forked, because only it has the options of its sandbox; the child
 * closes everything of that sandbox and makes its own. Processes, memory, random state and
 * clients of the first sandbox are not inherited. The variables of its programs are inherited
 * only if the caller asks for them, since they may be secrets.
 */
#include "core/worktree/fork.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/fd.h"
#include "core/keeper/claim.h"
#include "core/keeper/keeper.h"
#include "core/keeper/wire.h"
#include "core/request/image_root.h"
#include "core/run/run.h"
#include "core/worktree/layers.h"
#include "core/worktree/sweep_layers.h"
#include "registry/registry.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_FORKS 1024
#define MAX_LOCKS (2 * LAYER_MAX_CHAIN + 2)

/* What a fork is made of. */
struct spawn_request {
    const struct keeper *parent;
    const struct keeper_sealed *sealed;
    const struct worktree_origin *origin; /* of its workspace; NULL: it has none */
    const char *const *labels;
    bool inherits_env;
    int report;
};

/* The options of the parent, for a new run. */
static void inherit(const struct spawn_request *wanted, struct carrel_run_options *options,
        struct carrel_workspace_options *workspace)
{
    *options = *wanted->parent->session.request->options;
    keeper_fill_limits(wanted->parent, options);
    if (!wanted->inherits_env)
        options->env = NULL;
    if (wanted->parent->session.root) /* the same image, even if its name has moved on */
        options->image = wanted->parent->session.root->image->pin;
    if (options->workspace) {
        *workspace = *options->workspace;
        workspace->task = wanted->parent->session.result->task;
        workspace->run = workspace->resume = workspace->fork = NULL;
        options->workspace = workspace;
    }
}

static int init_fork(struct keeper *child, const struct spawn_request *wanted,
        struct keeper_ready *ready, struct carrel_error *err)
{
    const struct keeper *parent = wanted->parent;
    const struct claim_request request = {
        .policy = parent->session.request->policy,
        .requester = &wanted->report,
    };

    child->name = "";
    child->labels = wanted->labels ? wanted->labels : parent->labels;
    child->lease_ms = parent->lease_ms;
    child->idle_ms = parent->idle_ms;
    child->is_apart = parent->is_apart;
    child->base = &wanted->sealed->files;
    int r = session_permit(&child->session, err);
    if (r == 0)
        r = keeper_claim(&request, ready->id, &child->entry, err);
    return r;
}

/* The locks of all layers that the fork lies on. */
static size_t list_locks(const struct spawn_request *wanted, int locks[static MAX_LOCKS])
{
    const struct session *session = &wanted->parent->session;
    size_t n = 0;

    locks[n++] = wanted->sealed->files_copy.dir;
    locks[n++] = wanted->sealed->worktree_copy.dir;
    n += layers_locks(session->layers, locks + n);
    if (session->worktree)
        n += layers_locks(session->worktree->layers, locks + n);
    return n;
}

/* The fork failed. Others may have failed before, so these may be the last locks of the layers.
 */
static _Noreturn void give_up(const struct spawn_request *wanted,
        const struct keeper_ready *ready, const int *locks, size_t n)
{
    for (size_t i = 0; i < n; i++)
        fd_close(locks[i]);
    sweep_own_layers();
    keeper_send_ready(wanted->report, ready, -1);
    _exit(1);
}

static _Noreturn void become_fork(const struct spawn_request *wanted)
{
    int locks[MAX_LOCKS];
    const size_t n_locks = list_locks(wanted, locks);
    struct keeper_ready ready = { 0 };
    struct carrel_run_options options;
    struct carrel_workspace_options workspace;
    struct keeper *child = calloc(1, sizeof(*child));

    inherit(wanted, &options, &workspace);
    const struct run_request request = {
        .options = &options,
        .policy = wanted->parent->session.request->policy,
        .origin = wanted->origin,
    };
    int r = child ? session_init(&child->session, &request, &ready.error)
                  : err_set_errno(&ready.error, -ENOMEM, "keeper");
    if (r == 0)
        r = init_fork(child, wanted, &ready, &ready.error);
    if (r < 0)
        give_up(wanted, &ready, locks, n_locks);
    child->borrowed_locks = locks;
    child->n_borrowed_locks = n_locks;
    _exit(keeper_main(child, ready.id, wanted->report));
}

static void close_others(const struct spawn_request *wanted)
{
    int keep[MAX_LOCKS + 4] = { 0, 1, 2, wanted->report };

    fd_close_all_but(keep, 4 + list_locks(wanted, keep + 4));
}

/* A grandchild, so that this keeper has no child to wait for. */
static int spawn(const struct spawn_request *wanted, struct carrel_error *err)
{
    pid_t pid = fork();

    if (pid < 0)
        return err_set_errno(err, -errno, "fork");
    if (pid > 0) {
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
            ;
        return 0;
    }
    (void)setsid();
    close_others(wanted); /* before the fork: it sizes the table of descriptors */
    pid = fork();
    if (pid != 0)
        _exit(pid < 0);
    become_fork(wanted);
}

static int spawn_all(struct keeper *keeper, const struct keeper_message *request,
        const char *const *labels, bool *has_copy, struct carrel_error *err)
{
    AUTO(keeper_sealed_finish) struct keeper_sealed sealed = KEEPER_SEALED_INIT;
    const struct worktree *worktree = keeper->session.worktree;
    int ends[2];

    if (request->value < 1 || request->value > MAX_FORKS)
        return err_set(err, -EINVAL, "1 to %d forks at a time", MAX_FORKS);
    int r = keeper_seal(keeper, &sealed, err);
    *has_copy = sealed.files_copy.dir >= 0 || sealed.worktree_copy.dir >= 0;
    if (r == 0)
        r = recorder_note(&keeper->session.recorder, "sandbox_forked", NULL, err);
    if (r < 0)
        return r;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return err_set_errno(err, -errno, "socketpair");
    AUTO(fd_close) int read_end = ends[0];
    /* Room for all reports, so that no fork waits for the client. */
    const int room = request->value * KEEPER_READY_ROOM;
    (void)setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
    const struct worktree_origin origin = {
        .ws = worktree ? worktree->ws : NULL,
        .layers = sealed.worktree,
    };
    const struct spawn_request wanted = {
        .parent = keeper,
        .sealed = &sealed,
        .origin = worktree ? &origin : NULL,
        .labels = labels,
        .inherits_env = request->flags & KEEPER_INHERIT,
        .report = ends[1],
    };
    for (int32_t i = 0; r == 0 && i < request->value; i++) {
        r = spawn(&wanted, err);
        sealed.is_used = sealed.is_used || r == 0;
    }
    fd_close(ends[1]);
    /* The client gets the reports of those that were started, and counts the missing itself. */
    return sealed.is_used ? fd_steal(&read_end) : r;
}

/* Forks that failed while the copies were still locked here could not remove them. */
int keeper_fork(struct keeper *keeper, const struct keeper_message *request,
        const char *const *labels, struct carrel_error *err)
{
    bool has_copy = false;

    int r = spawn_all(keeper, request, labels, &has_copy, err);
    if (has_copy)
        sweep_own_layers();
    return r;
}
