/* snapshots.c - looking at snapshots, and removing them. */
#include "base/auto.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "core/state/state.h"
#include "core/worktree/sweep_layers.h"
#include "layer/snapshot.h"
#include "workspace/harvest/upper.h"
#include <carrel/sandbox.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <time.h>
#include <unistd.h>

struct walk {
    const char *state;
    int (*visit)(const struct carrel_snapshot_info *info, void *context);
    void *context;
};

static uint64_t bytes_of(const char *state, const char *id)
{
    AUTO(layer_close) struct layer layer = LAYER_INIT;
    uint64_t bytes = 0;
    uint64_t inodes;

    if (layer_open(state, id, &layer, NULL) == 0)
        (void)upper_usage(
                layer.dir, UINT64_MAX, &bytes, &inodes, NULL); /* as far as it can be counted */
    return bytes;
}

static int show(const struct snapshot *snapshot, void *context)
{
    const struct walk *walk = context;
    const struct timespec when = { .tv_sec = snapshot->created_s };
    char created[CLOCK_STAMP];

    clock_stamp(&when, created);
    const struct carrel_snapshot_info info = {
        .size = sizeof(info),
        .name = snapshot->name,
        .created = created,
        .from = snapshot->from,
        .image = snapshot->image,
        .n_layers = snapshot->layers.n,
        .bytes = snapshot->layers.n ? bytes_of(walk->state, snapshot->layers.ids[0]) : 0,
    };
    return walk->visit(&info, walk->context);
}

int carrel_snapshot_each(int (*visit)(const struct carrel_snapshot_info *info, void *context),
        void *context, struct carrel_error *err)
{
    char state[PATH_MAX];
    struct walk walk = { .state = state, .visit = visit, .context = context };

    err = ERR_OR_IGNORED(err);
    int r = state_path(state, sizeof(state), err);
    if (r < 0 || access(state, F_OK) < 0)
        return r; /* nothing was ever made */
    return snapshot_each(state, show, &walk, err);
}

int carrel_snapshot_remove(const char *name, struct carrel_error *err)
{
    char state[PATH_MAX];

    err = ERR_OR_IGNORED(err);
    int r = state_path(state, sizeof(state), err);
    if (r == 0)
        r = snapshot_remove(state, name, err);
    if (r == -ENOENT)
        return err_from(err, r, CARREL_FROM_CALLER);
    if (r == 0)
        r = sweep_layers(state, err);
    return r < 0 ? r : 0;
}
