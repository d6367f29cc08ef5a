/*
 * fork.c - sandboxes that begin with the files of another one.
 *
 * A fork is the request of its parent with other layers: the keeper writes it and starts
 * another keeper with it. Processes, memory, random state and clients of the parent are not
 * inherited. The variables of its programs are inherited only if the client asks for them,
 * since they may be secrets. The policy is read again, so a policy that was tightened meanwhile
 * counts.
 */
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "core/keeper/keeper.h"
#include "core/keeper/launch.h"
#include "core/keeper/wire.h"
#include "core/request/image_root.h"
#include "core/request/request.h"
#include "core/run/run.h"
#include "core/worktree/layers.h"
#include "core/worktree/sweep_layers.h"
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAX_FORKS 1024
#define MAX_LOCKS (2 * LAYER_MAX_CHAIN + 2)

/* The options of the parent, for a new run. */
static void inherit(const struct keeper *parent, bool inherits_env,
        struct carrel_run_options *options, struct carrel_workspace_options *workspace)
{
    *options = *parent->session.request->options;
    keeper_fill_limits(parent, options);
    if (!inherits_env)
        options->env = NULL;
    if (parent->session.root) /* the same image, even if its name has moved on */
        options->image = parent->session.root->image->pin;
    if (options->workspace) {
        *workspace = *options->workspace;
        workspace->task = parent->session.result->task;
        workspace->run = workspace->resume = workspace->fork = NULL;
        options->workspace = workspace;
    }
}

/* The locks of all layers that the fork lies on; no -1 among them. */
static size_t list_locks(const struct keeper *parent, const struct keeper_sealed *sealed,
        int locks[static MAX_LOCKS])
{
    const struct session *session = &parent->session;
    size_t n = 0;

    if (sealed->files_copy.dir >= 0)
        locks[n++] = sealed->files_copy.dir;
    if (sealed->worktree_copy.dir >= 0)
        locks[n++] = sealed->worktree_copy.dir;
    n += layers_locks(session->layers, locks + n);
    if (session->worktree)
        n += layers_locks(session->worktree->layers, locks + n);
    return n;
}

/* As the child will have them. */
static void number_locks(
        size_t n, char texts[static MAX_LOCKS][24], const char *list[static MAX_LOCKS + 1])
{
    for (size_t i = 0; i < n; i++) {
        (void)snprintf(texts[i], sizeof(texts[i]), "%zu", KEEPER_FIRST_LOCK + i);
        list[i] = texts[i];
    }
    list[n] = NULL;
}

/* What every one of the forks asks for. */
static int write_request(const struct keeper *parent, const struct keeper_sealed *sealed,
        size_t n_locks, const char *const *labels, bool inherits_env, struct buf *out,
        struct carrel_error *err)
{
    struct carrel_run_options run;
    struct carrel_workspace_options workspace;
    char files[LAYER_LIST_SIZE];
    char workspace_files[LAYER_LIST_SIZE];
    char name[2 * NAME_ID_MAX + 2];
    char numbers[MAX_LOCKS][24];
    const char *locks[MAX_LOCKS + 1];
    const struct worktree *worktree = parent->session.worktree;
    const struct carrel_sandbox_options sandbox = {
        .size = sizeof(sandbox),
        .labels = labels ? labels : parent->labels,
        .lease_ms = parent->lease_ms ? parent->lease_ms : CARREL_NEVER,
        .idle_ms = parent->idle_ms,
    };

    AUTO(free) char **mounts = NULL;
    int r = mounted_ids(&parent->session.mounted, &mounts, err);
    if (r < 0)
        return r;
    inherit(parent, inherits_env, &run, &workspace);
    layer_list_write(&sealed->files, files);
    layer_list_write(&sealed->worktree, workspace_files);
    if (worktree)
        (void)snprintf(name, sizeof(name), "%s/%s", worktree->ws->task, worktree->ws->run);
    number_locks(n_locks, numbers, locks);
    const struct request_layers layers = {
        .files = files,
        .workspace = worktree ? name : NULL,
        .workspace_files = worktree ? workspace_files : NULL,
        .mounts = (const char *const *)mounts,
        .locks = locks,
    };
    return request_write(&run, &sandbox, &layers, out, err);
}

static int spawn_all(struct keeper *keeper, const struct keeper_message *request,
        const char *const *labels, bool *has_copy, struct carrel_error *err)
{
    AUTO(keeper_sealed_finish) struct keeper_sealed sealed = KEEPER_SEALED_INIT;
    AUTO(buf_finish) struct buf text = BUF_INIT(REQUEST_MAX);
    int locks[MAX_LOCKS];
    int ends[2];

    if (request->value < 1 || request->value > MAX_FORKS)
        return err_set(err, -EINVAL, "1 to %d forks at a time", MAX_FORKS);
    if (!keeper->cwd || access(keeper->cwd, X_OK) < 0)
        return err_set(err, -ENOENT,
                "the directory in which the sandbox was created%s%s is gone, so the policy of "
                "a "
                "fork cannot be read; 'carrel snapshot' it and 'carrel create --from' that",
                keeper->cwd ? ", " : "", keeper->cwd ? keeper->cwd : "");
    int r = keeper_seal(keeper, &sealed, err);
    *has_copy = sealed.files_copy.dir >= 0 || sealed.worktree_copy.dir >= 0;
    if (r == 0)
        r = recorder_note(&keeper->session.recorder, "sandbox_forked", NULL, err);
    if (r < 0)
        return r;
    const size_t n_locks = list_locks(keeper, &sealed, locks);
    r = write_request(
            keeper, &sealed, n_locks, labels, request->flags & KEEPER_INHERIT, &text, err);
    if (r < 0)
        return r;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return err_set_errno(err, -errno, "socketpair");
    AUTO(fd_close) int read_end = ends[0];
    /* Room for all reports, so that no fork waits for the client. */
    const int room = request->value * KEEPER_READY_ROOM;
    (void)setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
    const struct keeper_launch launch = {
        .cwd = keeper->cwd,
        .request = &text,
        .report = ends[1],
        .locks = locks,
        .n_locks = n_locks,
    };
    for (int32_t i = 0; r == 0 && i < request->value; i++) {
        r = keeper_launch(&launch, err);
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
