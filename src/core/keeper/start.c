/*
 * start.c - what a request asks for is looked up, permitted and claimed; then keeper_main().
 *
 * Everything is done here, in the keeper: the process that asked only waits for the report, and
 * the policy, the snapshot and the repository are read by the process that answers for them.
 */
#include "core/keeper/start.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "core/keeper/claim.h"
#include "core/keeper/keeper.h"
#include "core/keeper/launch.h"
#include "core/keeper/wire.h"
#include "core/request/request.h"
#include "core/run/run.h"
#include "core/state/state.h"
#include "core/worktree/from_snapshot.h"
#include "core/worktree/sweep_layers.h"
#include "policy/policy.h"
#include "registry/registry.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAX_LOCKS 128

/* Everything that the keeper points to as long as it lives. */
struct start {
    struct request *request;
    struct policy *policy;
    struct from_snapshot *from; /* of `create --from` */
    struct layer_list files;    /* of a fork */
    struct workspace *ws;       /* that the workspace of a fork is a fork of */
    struct worktree_origin origin;
    struct run_request run;
    int locks[MAX_LOCKS];
    struct keeper keeper;
};

static int read_request(struct request **out, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(REQUEST_MAX);
    char chunk[16384];
    ssize_t n;

    while ((n = fd_read_all(KEEPER_REQUEST_FD, chunk, sizeof(chunk))) > 0)
        buf_add(&text, chunk, (size_t)n);
    fd_close(KEEPER_REQUEST_FD);
    if (n < 0 || text.is_short)
        return err_set_errno(err, n < 0 ? (int)n : -E2BIG, "read the request for a keeper");
    return request_parse(text.data ? text.data : "", text.len, out, err);
}

/* The first checkout of a commit may take long: the process that waits shows how far it is. */
static void send_progress(uint64_t done, uint64_t total, void *context)
{
    const struct keeper_ready ready = { .is_progress = true, .done = done, .total = total };

    (void)context;
    keeper_send_ready(KEEPER_REPORT_FD, &ready, -1);
}

static int take_locks(struct start *s, struct carrel_error *err)
{
    const char *const *locks = s->request->layers.locks;
    uint64_t fd;

    for (size_t i = 0; locks && locks[i]; i++) {
        if (i == MAX_LOCKS || str_parse_u64(locks[i], &fd) < 0 || fd < KEEPER_FIRST_LOCK ||
                fd > INT_MAX)
            return err_set(err, -EINVAL, "request: layers.locks: expected descriptors");
        s->locks[i] = (int)fd;
        s->keeper.n_borrowed_locks = i + 1;
    }
    s->keeper.borrowed_locks = s->locks;
    return 0;
}

/* The layers of a fork, and the workspace that its own is a fork of. */
static int take_layers(struct start *s, struct carrel_error *err)
{
    const struct request_layers *layers = &s->request->layers;
    char state[PATH_MAX];

    int r = take_locks(s, err);
    if (r == 0 && layer_list_parse(layers->files, &s->files) < 0)
        r = err_set(err, -EINVAL, "request: layers.files: expected ids of layers");
    s->keeper.base = &s->files;
    if (r < 0 || !layers->workspace)
        return r;
    if (layer_list_parse(layers->workspace_files, &s->origin.layers) < 0)
        return err_set(err, -EINVAL, "request: layers.workspace_files: expected ids of layers");
    r = state_path(state, sizeof(state), err);
    if (r == 0)
        r = workspace_find(state, layers->workspace, &s->ws, err);
    s->origin.ws = s->ws;
    s->run.origin = &s->origin;
    return r;
}

static int take_snapshot(struct start *s, struct carrel_error *err)
{
    int r = from_snapshot_find(s->request->sandbox.from, &s->request->run, &s->from, err);

    if (r < 0)
        return err_from_name(err, r);
    s->keeper.base = &s->from->snapshot.layers;
    s->run.origin = s->from->ws ? &s->from->origin : NULL;
    return 0;
}

static int check_names(const struct carrel_sandbox_options *o, struct carrel_error *err)
{
    int r = o->name ? name_check_id(o->name, "name", err) : 0;

    if (r == 0 && o->name && strncmp(o->name, "S-", 2) == 0)
        return err_set(err, -EINVAL,
                "name '%s': names must not begin with S-, which is for ids", o->name);
    return r < 0 ? r : keeper_check_labels(o->labels, err);
}

/*
 * A fork of this sandbox asks for what was opened: the keeper leaves the directory that
 * relative paths are about.
 */
static int fix_paths(struct start *s, struct carrel_error *err)
{
    const struct mounted *mounted = &s->keeper.session.mounted;
    struct carrel_run_options *o = &s->request->run;
    struct carrel_mount *mounts =
            arena_alloc(&s->request->arena, (mounted->n + 1) * sizeof(*mounts));

    if (!mounts)
        return err_set_errno(err, -ENOMEM, "mounts");
    memcpy(mounts, mounted->list, mounted->n * sizeof(*mounts));
    o->mounts = mounts;
    o->n_mounts = mounted->n;
    o->root = mounted->root;
    return 0;
}

static void fill(struct start *s)
{
    static const char *const no_program[] = { NULL };
    const struct carrel_sandbox_options *o = &s->request->sandbox;
    struct keeper *keeper = &s->keeper;

    s->request->run.argv = no_program;
    s->run.options = &s->request->run;
    s->request->workspace.progress = s->request->layers.files ? NULL : send_progress;
    keeper->name = o->name ? o->name : "";
    keeper->labels = o->labels;
    keeper->lease_ms = o->lease_ms == CARREL_NEVER ? 0
                       : o->lease_ms               ? o->lease_ms
                                                   : KEEPER_LEASE_MS;
    keeper->idle_ms = o->idle_ms;
    keeper->cwd = getcwd(NULL, 0);
}

/* Up to the entry in the registry, for which it may have to wait. */
static int claim(
        struct start *s, char id[static REGISTRY_WORD_MAX + 1], struct carrel_error *err)
{
    static const int report = KEEPER_REPORT_FD;

    int r = read_request(&s->request, err);
    if (r < 0)
        return r;
    fill(s);
    r = check_names(&s->request->sandbox, err);
    s->run.mount_ids = s->request->layers.mounts;
    if (r == 0 && s->request->layers.files)
        r = take_layers(s, err);
    else if (r == 0 && s->request->sandbox.from)
        r = take_snapshot(s, err);
    if (r == 0)
        r = run_load_policy(&s->request->run, &s->policy, err);
    s->run.policy = s->policy;
    if (r == 0)
        r = session_init(&s->keeper.session, &s->run, err);
    if (r == 0)
        r = session_permit(&s->keeper.session, err);
    if (r == 0)
        r = fix_paths(s, err);
    const struct claim_request request = {
        .name = s->request->sandbox.name,
        .policy = s->policy,
        .requester = &report,
    };
    return r < 0 ? r : err_from_name(err, keeper_claim(&request, id, &s->keeper.entry, err));
}

/* Other forks may have failed before, so these may be the last locks of the layers. */
static int give_up(const struct start *s, const struct keeper_ready *ready)
{
    for (size_t i = 0; i < s->keeper.n_borrowed_locks; i++)
        fd_close(s->keeper.borrowed_locks[i]);
    if (s->keeper.n_borrowed_locks > 0)
        sweep_own_layers();
    keeper_send_ready(KEEPER_REPORT_FD, ready, -1);
    return 1;
}

int keeper_execute(void)
{
    static struct start start; /* as long as the process */
    struct keeper_ready ready = { 0 };
    char id[REGISTRY_WORD_MAX + 1];

    pid_t pid = fork();
    if (pid != 0)
        return pid < 0;
    fd_raise_limit(); /* each client and program takes some */
    int r = claim(&start, id, &ready.error);
    if (r < 0)
        return give_up(&start, &ready);
    return keeper_main(&start.keeper, id, KEEPER_REPORT_FD);
}
