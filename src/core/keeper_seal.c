/*
 * keeper_seal.c - what a sandbox wrote becomes something that others can begin with.
 *
 * An open file or a working directory keeps its process on the layer it was opened in, so a
 * layer can be put under another one only while nothing runs. Then the sandbox is made again:
 * same id, same clients, a few milliseconds. While programs run their layer is copied instead.
 */
#include "base/auto.h"
#include "base/err.h"
#include "base/json.h"
#include "core/ground.h"
#include "core/image_root.h"
#include "core/keeper.h"
#include "layer/snapshot.h"
#include "registry/registry.h"
#include "workspace/renew.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* After the sandbox was stopped; where this fails there is none any more. */
static int stand_again(struct keeper *keeper, struct carrel_error *err)
{
    struct stage *stage = &keeper->stage;

    int r = stage->place ? workspace_end_use(stage->place->ws, true, err) : 0;
    if (r == 0)
        r = stage_remake(stage, err);
    if (r == 0)
        r = sandbox_set_lease(stage->box, keeper->lease_end_ns, keeper->idle_ms, err);
    if (r == 0 && keeper->is_paused)
        r = sandbox_pause(stage->box, err);
    keeper->oom_kills = keeper->pids_refused = 0;
    return r;
}

static int stack_up(struct keeper *keeper, struct carrel_error *err)
{
    struct carrel_error lost = { 0 };

    int r = sandbox_stop(keeper->stage.box, NULL, err);
    if (r == 0)
        r = ground_seal(keeper->stage.ground, err);
    if (stand_again(keeper, &lost) < 0) {
        keeper->end = KEEPER_LOST;
        return err_set(err, lost.code, "make the sandbox again: %s", lost.message);
    }
    return r;
}

static int copy_layer(struct keeper *keeper, struct layer *copy, struct carrel_error *err)
{
    struct ground *ground = keeper->stage.ground;

    int r = keeper->is_paused ? 0 : sandbox_pause(keeper->stage.box, err);
    if (r < 0)
        return r;
    r = layer_copy(ground->state, &ground->top, copy, err);
    if (keeper->is_paused)
        return r;
    struct carrel_error stuck = { 0 };
    int resumed = sandbox_resume(keeper->stage.box, &stuck);
    if (r == 0 && resumed < 0) {
        *err = stuck;
        return resumed;
    }
    return r;
}

int keeper_seal(struct keeper *keeper, struct ground_base *out, struct layer *copy,
        struct carrel_error *err)
{
    pid_t one;

    int n = sandbox_pids(keeper->stage.box, &one, 1, err);
    if (n < 0 && n != -E2BIG)
        return n;
    bool is_quiet = n == 0;
    int r = is_quiet ? stack_up(keeper, err) : copy_layer(keeper, copy, err);
    return r < 0 ? r : ground_list(keeper->stage.ground, is_quiet ? NULL : copy, out, err);
}

static int record(struct keeper *keeper, const char *name, const struct ground_base *base,
        struct carrel_error *err)
{
    AUTO(buf_finish) struct buf detail = BUF_INIT(8192);
    struct json json = { .out = &detail };

    json_object(&json, NULL);
    json_str(&json, "name", name);
    json_array(&json, "layers");
    for (size_t i = 0; i < base->n; i++)
        json_str(&json, NULL, base->ids[i]);
    json_end_array(&json);
    json_end_object(&json);
    return evidence_note(&keeper->stage.evidence, "snapshot_made", detail.data, err);
}

/* Before anything is made for it. */
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
    struct snapshot snapshot = { .from = keeper->entry->id };
    AUTO(layer_close) struct layer copy = LAYER_INIT;
    struct ground_base base;

    int r = check_free(keeper->stage.ground->state, name, err);
    if (r == 0)
        r = keeper_seal(keeper, &base, &copy, err);
    if (r < 0)
        return r;
    *is_copied = copy.dir >= 0;
    (void)snprintf(snapshot.name, sizeof(snapshot.name), "%s", name);
    if (keeper->stage.root)
        snapshot.image =
                (char *)(uintptr_t)keeper->stage.root->image->name; /* not ours to free */
    memcpy(snapshot.layers, base.ids, sizeof(snapshot.layers));
    snapshot.n_layers = base.n;
    r = snapshot_write(keeper->stage.ground->state, &snapshot, err);
    return r < 0 ? r : record(keeper, name, &base, err);
}
