/*
 * session.c - from options to a sandbox that is ready, with every step on record.
 *
 * The options are checked against the policy, the run gets its name, its workspace and its
 * sandbox; the journal has a record of each step before it is taken.
 */
#include "core/run/session.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/store.h"
#include "core/disk/image.h"
#include "core/harvest/conclude.h"
#include "core/request/image_root.h"
#include "core/request/spec.h"
#include "core/result/capture.h"
#include "core/result/outcome.h"
#include "core/run/notes.h"
#include "core/run/run.h"
#include "core/state/state.h"
#include "core/state/writable.h"
#include "core/worktree/layers.h"
#include "policy/policy.h"
#include "workspace/renew.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define DEFAULT_TIMEOUT_MS 300000U
#define DEFAULT_OUTPUT_BYTES (10U << 10)

/* The workspace's mounts come after the caller's. */
static int show_worktree(struct session *session, struct spec *spec, struct carrel_error *err)
{
    int r = spec_add_mounts(spec, session->worktree->mounts, session->worktree->n_mounts, err);

    if (r == 0)
        r = workspace_begin_use(session->worktree->ws, err);
    return r;
}

/* Lets others know what of the host the sandbox may write to. */
static int note_writable(
        struct session *session, const struct spec *spec, struct carrel_error *err)
{
    AUTO(free) struct writable_place *places = NULL;
    size_t n = 0;

    if (session->writable >= 0)
        return 0;
    int r = spec_list_writable(spec, &places, &n, err);
    if (r < 0 || n == 0)
        return r;
    session->writable = writable_note(session->result->run, places, n, err);
    return session->writable < 0 ? err_wrap(err, session->writable, "nothing is run unrecorded")
                                 : 0;
}

static int record_step(
        const char *event, const char *detail, void *context, struct carrel_error *err)
{
    return recorder_note(context, event, detail, err);
}

/* Makes or takes up the run's workspace. */
static int open_worktree(struct session *session, struct spec *spec, struct carrel_error *err)
{
    struct carrel_run_result *result = session->result;
    const struct worktree_request request = {
        .options = session->options->workspace,
        .runtime = spec->runtime,
        .spec = &spec->box,
        .policy = session->request->policy,
        .task = result->task,
        .run = result->run,
        .origin = session->request->origin,
        .record = record_step,
        .record_context = &session->recorder,
    };

    int r = err_from_name(err, worktree_open(&request, &session->worktree, err));
    if (r == 0)
        r = show_worktree(session, spec, err);
    return r;
}

/* Private files are on disk. */
static void use_layers(struct session *session, struct spec *spec)
{
    if (session->root)
        spec->box.root_overlay = &session->layers->overlay[LAYERS_TREE];
    else
        spec->box.space = &session->layers->overlay[LAYERS_TREE];
}

/* The part of the image that the layers write to. */
static int use_image_dir(const struct session *session, struct layers *layers, const char *path,
        const char *name, struct carrel_error *err)
{
    char space[PATH_MAX];

    AUTO(fd_close) int dir = openat(session->image, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return err_set_errno(err, -errno, "open '%s' of a disk image", name);
    if ((size_t)snprintf(space, sizeof(space), "%s/" STORE_DISK "/%s", path, name) >=
            sizeof(space))
        return err_set_errno(err, -ENAMETOOLONG, "'%s'", path);
    return layers_use_space(layers, space, dir, err);
}

/* Whether there can be an image: asked before a workspace is made and a setup command runs. */
static int check_disk(
        const struct session *session, const struct spec *spec, struct carrel_error *err)
{
    const struct carrel_workspace_options *o = session->options->workspace;

    if (!disk_must_be_exact(&spec->box) || (!o && !session->layers))
        return 0;
    if (o && o->tree == CARREL_TREE_COPY)
        return err_set(err, -ENOTSUP,
                "an exact disk limit (--require disk) needs a workspace that is an overlay, "
                "and --tree copy makes none");
    return disk_image_check(spec->box.limits.value[LIMIT_DISK], err);
}

/* One image for all that the sandbox writes on disk. That of a workspace belongs to it, and
 * outlives the session. */
static int use_disk_image(
        struct session *session, const struct spec *spec, struct carrel_error *err)
{
    struct workspace *ws = session->worktree ? session->worktree->ws : NULL;
    assert(ws || session->layers);
    const int dir = ws ? ws->dir : session->layers->top.dir;
    const char *path = ws ? ws->path : session->layers->top.path;

    if (ws && ws->mode != WORKSPACE_OVERLAY)
        return err_set(err, -ENOTSUP,
                "an exact disk limit (--require disk) needs a workspace that is an overlay, "
                "and this one is a %s",
                workspace_mode_name(ws->mode));
    session->image = disk_image_begin(dir, spec->box.limits.value[LIMIT_DISK], err);
    if (session->image < 0)
        return session->image;
    int r = ws ? use_image_dir(session, session->worktree->layers, path, DISK_IMAGE_TREE, err)
               : 0;
    return r == 0 && session->layers
                   ? use_image_dir(session, session->layers, path, DISK_IMAGE_FILES, err)
                   : r;
}

/* Files in memory are limited by their file system; this is for the others. */
static int limit_disk(
        struct session *session, const struct spec *spec, struct carrel_error *err)
{
    const uint64_t max_bytes = spec->box.limits.value[LIMIT_DISK];

    if (session->image >= 0 || (!session->layers && !session->worktree))
        return 0;
    if (disk_must_be_exact(&spec->box))
        return use_disk_image(session, spec, err);
    int r = session->layers ? disk_add(&session->disk, session->layers->top.dir, max_bytes, err)
                            : 0;
    return r == 0 && session->worktree
                   ? disk_add(&session->disk, session->worktree->ws->dir, max_bytes, err)
                   : r;
}

/* What is written over the image is removed with the sandbox: it is in memory, or on disk if
 * the kernel cannot do that. */
static int use_image(struct session *session, struct spec *spec, struct carrel_error *err)
{
    const char *const *trees = session->root->image->trees;

    if (!sandbox_has_memory_root())
        return layers_make(NULL, trees, &session->layers, err);
    session->memory = (struct sandbox_overlay){ .lower = trees };
    spec->box.root_overlay = &session->memory;
    return 0;
}

int session_begin_record(struct session *session, struct carrel_error *err)
{
    if (session->has_record || !session->request->policy)
        return 0;
    session->has_record = true;
    return recorder_begin(&session->recorder, session->result, &session->permit,
            session->request->policy, session->request->code, err);
}

/* A caller that needs the sandbox before the program, or may need another one, waits for it. */
static bool must_be_ready(const struct session *session)
{
    const char *const *fallback = session->permit.fallback;

    return session->must_be_ready || (fallback && fallback[0]);
}

/* The program is started with the size that the terminal has by then. */
static void note_size(struct carrel_run_options *options)
{
    struct winsize size;

    if (options->has_tty && ioctl(options->stdin_fd, TIOCGWINSZ, &size) == 0) {
        options->rows = size.ws_row;
        options->cols = size.ws_col;
    }
}

/* True: the caller got a signal that ends the run. */
static bool take_signal(struct session *session)
{
    struct signalfd_siginfo info;

    if (read(session->options->signal_fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
        return false;
    if (info.ssi_signo == SIGWINCH) {
        note_size(&session->permit.options);
        return false;
    }
    session->result->reason = CARREL_CANCELLED;
    session->result->cancel_signal = (int)info.ssi_signo;
    return true;
}

/* The time that the program may take is the most that its sandbox may take, too. */
static int await_sandbox(struct session *session, struct carrel_error *err)
{
    const uint64_t deadline_ns = clock_ns() + session->result->timeout_ms * UINT64_C(1000000);
    int r;

    do {
        r = sandbox_ready(session->box, deadline_ns, session->options->signal_fd, err);
        session->is_cancelled = r == -ECANCELED && take_signal(session);
    } while (r == -ECANCELED && !session->is_cancelled);
    return session->is_cancelled ? 0 : r;
}

static int make_sandbox(
        struct session *session, const struct spec *spec, struct carrel_error *err)
{
    const bool is_early = runtime_can(spec->runtime) & CAN_START_EARLY;

    int r = is_early ? 0 : session_begin_record(session, err);
    if (r == 0)
        r = err_from_name(err, sandbox_begin(spec->runtime, &spec->box, &session->box, err));
    if (r == 0)
        r = session_begin_record(session, err);
    if (r == 0 && (must_be_ready(session) || !is_early))
        r = await_sandbox(session, err);
    if (r < 0)
        sandbox_free(ptr_steal(&session->box));
    return r;
}

/* The runtime knows nothing of an image. Polling is not exact, so it is no protection. */
static void note_disk(struct session *session)
{
    if (session->image >= 0)
        session->result->held_by[LIMIT_DISK] = HELD_BY_FILESYSTEM;
    if (session->disk.n_dirs == 0)
        return;
    session->result->held_by[LIMIT_DISK] = HELD_BY_POLLING;
    session->result->protections &= ~PROTECT_BIT(PROTECT_DISK);
}

/*
 * The journal has the request before any program runs, anything is made for it or a fallback is
 * tried. An empty sandbox is none of these: if nothing else is to be made, the journal is begun
 * while the sandbox is being made.
 */
static int create(struct session *session, struct carrel_error *err)
{
    struct carrel_run_result *result = session->result;
    AUTO(spec_finish) struct spec spec = { 0 };

    int r = session->options->workspace || must_be_ready(session)
                    ? session_begin_record(session, err)
                    : 0;
    if (r == 0)
        r = spec_make(session->options, &session->mounted, result->run, &spec, err);
    spec.box.stays = session->stays;
    spec.box.isolation = (enum isolation)session->permit.least_isolation;
    if (r == 0 && session->root && !session->layers)
        r = use_image(session, &spec, err);
    if (r == 0 && session->layers)
        use_layers(session, &spec);
    if (r == 0)
        r = check_disk(session, &spec, err);
    if (r == 0 && session->options->workspace)
        r = open_worktree(session, &spec, err);
    if (r == 0) /* not earlier: a tree that is read meanwhile must hold still */
        r = note_writable(session, &spec, err);
    if (r == 0)
        r = limit_disk(session, &spec, err);
    if (r == 0 && session->worktree)
        r = recorder_workspace(&session->recorder, session->worktree->ws, err);
    if (r == 0)
        r = make_sandbox(session, &spec, err);
    if (r < 0)
        return r;
    session->runtime = spec.runtime;

    result->runtime = runtime_name(spec.runtime);
    result->isolation = session->box->isolation;
    result->protections = session->box->protections;
    memcpy(result->held_by, session->box->held_by, sizeof(result->held_by));
    note_disk(session);
    memcpy(result->limits, spec.box.limits.value, sizeof(result->limits));
    result_note_limits(result);
    notes_add(session);
    result->workspace = strdup(session->box->workspace);
    if (!result->workspace)
        return err_set_errno(err, -ENOMEM, "result");
    return recorder_sandbox(&session->recorder, result, err);
}

/* It must not be weaker than the first one, which the result describes. */
static int check_same(const struct session *session, struct carrel_error *err)
{
    static const enum limit limits[] = { LIMIT_MEMORY, LIMIT_PIDS, LIMIT_CPU, LIMIT_IO_READ,
        LIMIT_IO_WRITE };
    const struct carrel_run_result *result = session->result;

    assert(session->box);
    bool is_same = (session->box->protections & result->protections) == result->protections;

    for (size_t i = 0; i < ARRAY_LEN(limits); i++)
        is_same = is_same && session->box->held_by[limits[i]] == result->held_by[limits[i]];
    return is_same ? 0
                   : err_set(err, -ENOTSUP,
                             "it would have fewer protections, or limits enforced less "
                             "strictly, than before");
}

int session_remake(struct session *session, struct carrel_error *err)
{
    AUTO(spec_finish) struct spec spec = { 0 };

    sandbox_free(ptr_steal(&session->box));
    session->disk = DISK_INIT;
    int r = spec_make(session->options, &session->mounted, session->result->run, &spec, err);
    spec.box.stays = session->stays;
    spec.box.isolation = (enum isolation)session->permit.least_isolation;
    if (r == 0 && session->layers)
        use_layers(session, &spec);
    if (r == 0 && session->worktree)
        r = show_worktree(session, &spec, err);
    if (r == 0)
        r = limit_disk(session, &spec, err);
    if (r == 0)
        r = sandbox_create(spec.runtime, &spec.box, &session->box, err);
    return r < 0 ? r : check_same(session, err);
}

/* Its content stays there, until disk_image_recover(). */
static void drop_image(struct session *session)
{
    if (session->image < 0)
        return;
    if (session->worktree) {
        layers_leave_space(session->worktree->layers);
        store_unmount(session->worktree->ws->dir);
    } /* else it is unmounted with the layer */
    fd_close(fd_steal(&session->image));
}

int session_drop(struct session *session, int code)
{
    if (!session->worktree)
        return code;
    sandbox_free(ptr_steal(&session->box));
    drop_image(session);
    if (!session->options->workspace->resume)
        (void)worktree_discard(session->worktree, NULL); /* else swept */
    worktree_free(ptr_steal(&session->worktree));
    return code;
}

int session_make(struct session *session, struct carrel_error *err)
{
    const char *const *next = session->permit.fallback;
    const char *first = session->options->runtime;

    int r = create(session, err);
    for (; r == -ENOTSUP && next && *next; next++) {
        if (policy_runtime_isolation(*next) < (int)session->permit.least_isolation)
            continue;
        (void)session_drop(session, r);
        struct carrel_error why = *err;
        r = recorder_fallback(
                &session->recorder, session->options->runtime, *next, why.message, err);
        if (r < 0)
            return r;
        session->permit.options.runtime = *next;
        session->result->fallback_from = first;
        r = create(session, err);
    }
    return r;
}

/* Files that do not fit on the host's disk stay in the image. That is no failure of the run. */
static int end_image(struct session *session, struct carrel_error *why)
{
    int r = disk_image_end(session->worktree->ws->dir, why);

    drop_image(session);
    return r < 0 ? err_wrap(why, r, "its files are still in the disk image") : 0;
}

static int conclude_worktree(
        struct session *session, enum carrel_outcome_action action, struct carrel_error *err)
{
    struct carrel_run_result *result = session->result;
    const struct conclude_bounds bounds = { result->limits, result->timeout_ms,
        session->permit.may_commit };

    /* A commit names the seal of all records before it. */
    int r = action == CARREL_COMMIT
                    ? recorder_seal(&session->recorder, carrel_reason_name(result->reason), err)
                    : 0;
    return r < 0 ? r
                 : conclude(session->worktree, session->runtime, action, session->recorder.seal,
                           &bounds, &result->outcome, err);
}

int session_end_worktree(struct session *session, struct carrel_error *err)
{
    struct carrel_run_result *result = session->result;
    const struct carrel_workspace_options *o = session->options->workspace;
    struct carrel_error why = { 0 };
    if (!session->worktree)
        return 0;
    fd_close(fd_steal(&session->writable)); /* no program runs any more */
    bool is_success = result_is_ok(result);
    enum carrel_outcome_action action = is_success ? o->on_success : o->on_failure;

    if (action == CARREL_DISCARD)
        drop_image(session); /* what is discarded need not be copied out of it */
    int r = session->image >= 0 && end_image(session, &why) < 0
                    ? conclude_unread(session->worktree, &why, &result->outcome, err)
                    : conclude_worktree(session, action, err);
    if (r < 0)
        return r;
    outcome_write_text(result->outcome, result->run, &result->summary);
    return recorder_outcome(&session->recorder, result->outcome, err);
}

static int take_id(const char *given, const char *what, char prefix, char id[static 20],
        size_t size, struct carrel_error *err)
{
    if (!given)
        return state_new_id(prefix, id, err);
    (void)snprintf(id, size, "%s", given);
    return name_check_id(given, what, err);
}

/* The caller's ids, the workspace's when one is taken up again, or new ones. */
static int name_run(struct session *session, struct carrel_error *err)
{
    const struct carrel_workspace_options *o = session->options->workspace;
    struct carrel_run_result *result = session->result;

    if (!o)
        return state_new_id('R', result->run, err);
    if (o->resume)
        return worktree_find_ids(o->resume, result->task, result->run, err);
    int r = take_id(o->task, "task", 'T', result->task, sizeof(result->task), err);
    if (r == 0)
        r = take_id(o->run, "run", 'R', result->run, sizeof(result->run), err);
    if (r == 0 && o->task && o->run)
        r = worktree_check_free(result->task, result->run, err);
    return r;
}

static int open_image(struct session *session, struct carrel_error *err)
{
    struct carrel_run_options *options = &session->permit.options;

    if (options->image && strcmp(options->image, "none") == 0)
        options->image = NULL;
    if (!options->image)
        return 0;
    return err_from_name(err, image_root_open(options, &session->root, err));
}

/* From here on the options have the paths of what was opened. */
static int open_mounts(struct session *session, struct carrel_error *err)
{
    const struct run_request *request = session->request;
    struct carrel_run_options *options = &session->permit.options;

    int r = mounted_open(options, request->policy, request->mount_ids, &session->mounted, err);
    if (r < 0)
        return r == -EPERM ? err_from(err, r, CARREL_FROM_POLICY) : r;
    options->mounts = session->mounted.list;
    options->n_mounts = session->mounted.n;
    options->root = session->mounted.root;
    return 0;
}

int session_permit(struct session *session, struct carrel_error *err)
{
    const struct run_request *request = session->request;
    struct carrel_run_result *result = session->result;

    session->permit.options = *request->options;
    int r = request->policy ? permit_make(request->options, request->policy,
                                      (const char *const *)environ, &session->permit, err)
                            : 0;
    if (r == 0)
        r = open_mounts(session, err);
    if (r == 0)
        r = open_image(session, err);
    if (r < 0)
        return r;
    result->timeout_ms =
            session->options->timeout_ms ? session->options->timeout_ms : DEFAULT_TIMEOUT_MS;
    result->output_bytes = session->options->output_bytes ? session->options->output_bytes
                                                          : DEFAULT_OUTPUT_BYTES;
    return name_run(session, err);
}

int session_init(
        struct session *session, const struct run_request *request, struct carrel_error *err)
{
    *session = (struct session){
        .request = request,
        .mounted = MOUNTED_INIT,
        .disk = DISK_INIT,
        .image = -1,
        .writable = -1,
    };
    session->options = &session->permit.options;
    session->result = result_new();
    return session->result ? 0 : err_set_errno(err, -ENOMEM, "run");
}

void session_finish(struct session *session)
{
    sandbox_free(session->box);
    drop_image(session);
    /* After the sandbox: it holds the workspace's lock and writes into the layers. */
    if (session->worktree)
        worktree_free(session->worktree);
    if (session->layers)
        layers_free(session->layers);
    if (session->root)
        image_root_free(session->root);
    fd_close(session->writable);
    carrel_run_result_free(session->result);
    recorder_finish(session->recorder);
    permit_finish(session->permit);
    mounted_finish(session->mounted);
}

void session_abandon(struct session *session, const struct carrel_error *why)
{
    (void)session_begin_record(session, NULL);
    recorder_abandon(&session->recorder, why);
}
