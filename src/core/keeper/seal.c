/*
 * seal.c - seals the files of a sandbox, for snapshots and forks.
 *
 * An open file or a working directory stays in the layer in which it was opened. So a layer can
 * be sealed only while nothing runs, and while no client has a file open or watches one. Then
 * the sandbox is made again: same id, same clients, a few milliseconds. Else the layer is
 * copied; so it is if a disk image has it.
 */
#include "base/auto.h"
#include "base/err.h"
#include "base/json.h"
#include "core/keeper/keeper.h"
#include "core/request/image_root.h"
#include "core/worktree/fork.h"
#include "core/worktree/layers.h"
#include "layer/snapshot.h"
#include "registry/registry.h"
#include "workspace/renew.h"
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define REPORT_MS 1000 /* between the end of a program's last process and its report */

/* Removes a copy, unless another process has locked it. */
static void drop(struct layer *copy)
{
    if (copy->dir >= 0)
        (void)layer_remove(copy, NULL); /* else swept */
    layer_close(*copy);
}

void keeper_sealed_finish(struct keeper_sealed sealed)
{
    if (sealed.is_used) {
        layer_close(sealed.files_copy);
        layer_close(sealed.worktree_copy);
        return;
    }
    drop(&sealed.files_copy);
    drop(&sealed.worktree_copy);
}

/* After the sandbox was stopped; if this fails, the sandbox is lost. */
static int remake(struct keeper *keeper, struct carrel_error *err)
{
    struct session *session = &keeper->session;

    keeper_fill_limits(keeper, &session->permit.options);
    int r = session_remake(session, err);
    if (r == 0)
        r = sandbox_set_lease(session->box, keeper->lease_end_ns, keeper->idle_ms, err);
    if (r == 0 && keeper->is_paused)
        r = sandbox_pause(session->box, err);
    return r;
}

static int record(struct keeper *keeper, const char *name, const struct layer_list *layers,
        struct carrel_error *err)
{
    AUTO(buf_finish) struct buf detail = BUF_INIT(8192);
    struct json json = { .out = &detail };

    json_object(&json, NULL);
    json_str(&json, "name", name);
    json_array(&json, "layers");
    for (size_t i = 0; i < layers->n; i++)
        json_str(&json, NULL, layers->ids[i]);
    json_end_array(&json);
    json_end_object(&json);
    return recorder_note(&keeper->session.recorder, "snapshot_made", detail.data, err);
}

static int list_layers(
        const struct keeper *keeper, struct keeper_sealed *sealed, struct carrel_error *err)
{
    const struct session *session = &keeper->session;

    int r = layers_list(session->layers,
            sealed->files_copy.dir >= 0 ? &sealed->files_copy : NULL, &sealed->files, err);
    return r < 0 || !session->worktree
                   ? r
                   : layers_list(session->worktree->layers,
                             sealed->worktree_copy.dir >= 0 ? &sealed->worktree_copy : NULL,
                             &sealed->worktree, err);
}

/* The snapshot of what was sealed, and its record. */
static int name_sealed(struct keeper *keeper, const char *name, struct keeper_sealed *sealed,
        struct carrel_error *err)
{
    const struct session *session = &keeper->session;
    struct snapshot snapshot = {
        .from = keeper->entry->id,
        .layers = sealed->files,
        .workspace_layers = sealed->worktree,
    };
    char workspace[2 * NAME_ID_MAX + 2];

    if (session->worktree) {
        const struct workspace *ws = session->worktree->ws;
        (void)snprintf(workspace, sizeof(workspace), "%s/%s", ws->task, ws->run);
        snapshot.workspace = workspace;
    }
    (void)snprintf(snapshot.name, sizeof(snapshot.name), "%s", name);
    if (session->root)
        snapshot.image = (char *)(uintptr_t)session->root->image->pin; /* not ours to free */
    int r = snapshot_write(session->layers->state, &snapshot, err);
    sealed->is_used = r == 0;
    return r < 0 ? r : record(keeper, name, &sealed->files, err);
}

/* The sandbox is lost; without a snapshot its files would be removed with its keeper. */
static int save_lost(struct keeper *keeper)
{
    struct keeper_sealed sealed = KEEPER_SEALED_INIT; /* without copies: nothing to finish */
    char name[SNAPSHOT_NAME_MAX + 8];                 /* too long: it is refused */

    (void)snprintf(name, sizeof(name), "lost-%s", keeper->entry->id);
    int r = list_layers(keeper, &sealed, NULL);
    return r < 0 ? r : name_sealed(keeper, name, &sealed, NULL);
}

/* It cannot be made again. Its files are kept, and the error says where. */
static int lose(struct keeper *keeper, bool is_sealed, const struct carrel_error *why,
        struct carrel_error *err)
{
    const struct worktree *worktree = keeper->session.worktree;

    keeper->end = KEEPER_LOST;
    bool is_saved = is_sealed && save_lost(keeper) == 0;
    return err_set(err, why->code, "make the sandbox again: %s%s%s%s%s", why->message,
            is_saved ? "; its files are kept as snapshot lost-" : "",
            is_saved ? keeper->entry->id : "", worktree ? "; its work is in workspace " : "",
            worktree ? worktree->ws->run : "");
}

static int seal_all(struct keeper *keeper, bool *is_sealed, struct carrel_error *err)
{
    struct worktree *worktree = keeper->session.worktree;

    int r = worktree ? workspace_end_use(worktree->ws, false, err) : 0; /* without a sync */
    if (r == 0)
        r = layers_seal(keeper->session.layers, err);
    *is_sealed = r == 0;
    return r == 0 && worktree ? worktree_seal(worktree, err) : r;
}

static int seal_and_remake(struct keeper *keeper, struct carrel_error *err)
{
    struct carrel_error why = { 0 };
    struct worktree *worktree = keeper->session.worktree;
    struct sandbox_usage usage = USAGE_INIT;
    bool is_sealed = false;

    loop_io_stop(&keeper->on_box); /* its descriptor is closed with the old sandbox */
    int r = sandbox_stop(keeper->session.box, &usage, err);
    if (r < 0) { /* a process hangs in the kernel: no second sandbox beside it */
        keeper->end = KEEPER_LOST;
        return r;
    }
    keeper_add_usage(keeper, &usage);
    keeper->before = usage;
    r = seal_all(keeper, &is_sealed, err);
    int again = 0;
    if (r < 0) {
        /* The writable layer is used again, and an overlay refuses a used work directory. The
         * layers of the workspace may have changed; old mounts would hide its work. */
        (void)layer_renew(&keeper->session.layers->top, NULL);
        again = worktree ? worktree_remount(worktree, &why) : 0;
    }
    if (again == 0)
        again = remake(keeper, &why);
    return again < 0 ? lose(keeper, is_sealed, &why, err) : r;
}

static int copy_layers(
        struct keeper *keeper, struct keeper_sealed *out, struct carrel_error *err)
{
    const struct session *session = &keeper->session;

    int r = layers_copy(session->layers, &out->files_copy, err);
    return r < 0 || !session->worktree
                   ? r
                   : layers_copy(session->worktree->layers, &out->worktree_copy, err);
}

static int copy_halted(
        struct keeper *keeper, struct keeper_sealed *out, struct carrel_error *err)
{
    struct carrel_error stuck = { 0 };

    int r = keeper->is_paused ? 0 : sandbox_pause(keeper->session.box, err);
    if (r < 0)
        return r;
    r = copy_layers(keeper, out, err);
    if (keeper->is_paused)
        return r;
    int resumed = sandbox_resume(keeper->session.box, &stuck);
    if (r == 0 && resumed < 0) {
        *err = stuck;
        return resumed;
    }
    return r;
}

/* 1: there is none, as far as one look can tell; 0 also if there is no way to look. */
static int has_no_process(struct keeper *keeper, struct carrel_error *err)
{
    pid_t one;

    if (!(keeper->session.box->can & CAN_HOST_PIDS))
        return 0;
    int n = sandbox_pids(keeper->session.box, &one, 1, err);
    return n < 0 && n != -E2BIG ? n : n == 0;
}

/*
 * 1: the layer can be sealed. A program whose end was not reported yet is waited for, since a
 * sandbox that was made again would never report it. One look can miss a process that is just
 * being reparented, which happens to each once; so there are two looks.
 */
static int is_quiet(struct keeper *keeper, struct carrel_error *err)
{
    struct pollfd reports = { .fd = keeper->session.box->event_fd, .events = POLLIN };

    if (keeper_is_open_outside(keeper))
        return 0;
    int r = has_no_process(keeper, err);
    while (r == 1 && keeper_count_running(keeper) > 0) {
        if (poll(&reports, 1, REPORT_MS) < 1)
            return 0;
        r = keeper_take_event(keeper, err);
        if (r == 0 && keeper->end != KEEPER_GOES_ON)
            r = err_set(err, -ESRCH, "the sandbox has ended");
        if (r == 0)
            r = has_no_process(keeper, err);
    }
    return r == 1 ? has_no_process(keeper, err) : r;
}

/*
 * If the root is an image, a program may have replaced a directory that a sandbox needs. No
 * sandbox could be made of such files, so sealing is refused while this one still exists. A
 * directory that cannot be looked at is left to the next sandbox to refuse.
 */
static int check_root(struct keeper *keeper, struct carrel_error *err)
{
    static const char *const needed[] = { "/tmp", "/home/agent", "/workspace" };

    for (size_t i = 0; keeper->session.root && i < ARRAY_LEN(needed); i++) {
        struct file_request request = FILE_REQUEST_INIT;
        struct file_answer answer = FILE_ANSWER_INIT;
        request.op = FILE_STAT;
        request.path = needed[i];
        int r = sandbox_file(keeper->session.box, &request, &answer, NULL);
        bool is_wrong = r == -ENOTDIR || r == -ELOOP || (r == 0 && !S_ISDIR(answer.stat.mode));
        if (r == -ENOENT) { /* a dangling link is in the way, too */
            request.flags = FILE_NO_FOLLOW;
            is_wrong = sandbox_file(keeper->session.box, &request, &answer, NULL) == 0;
        }
        if (is_wrong)
            return err_set(err, -ENOTDIR,
                    "'%s' of the root is not a directory any more; cannot create a sandbox of "
                    "it",
                    needed[i]);
    }
    return 0;
}

int keeper_seal(struct keeper *keeper, struct keeper_sealed *out, struct carrel_error *err)
{
    int r = keeper->session.worktree ? worktree_check_fork(keeper->session.worktree->ws, err)
                                     : 0;
    if (r == 0)
        r = check_root(keeper, err);
    if (r < 0)
        return r; /* before anything is stopped */
    int quiet = is_quiet(keeper, err);
    if (quiet < 0)
        return quiet;
    r = quiet && keeper->session.image < 0 ? seal_and_remake(keeper, err)
                                           : copy_halted(keeper, out, err);
    return r < 0 ? r : list_layers(keeper, out, err);
}

/* Before anything is sealed. */
static int check_free(const char *state, const char *name, struct carrel_error *err)
{
    AUTO(snapshot_finish) struct snapshot taken = { 0 };

    int r = snapshot_read(state, name, &taken, err);
    if (r == -ENOENT)
        return 0;
    return r < 0 ? r : err_set(err, -EEXIST, "there is a snapshot '%s' already", name);
}

int keeper_snapshot(
        struct keeper *keeper, const char *name, bool *is_copied, struct carrel_error *err)
{
    AUTO(keeper_sealed_finish) struct keeper_sealed sealed = KEEPER_SEALED_INIT;

    int r = check_free(keeper->session.layers->state, name, err);
    if (r == 0)
        r = keeper_seal(keeper, &sealed, err);
    if (r < 0)
        return r;
    *is_copied = sealed.files_copy.dir >= 0;
    return name_sealed(keeper, name, &sealed, err);
}
