/* from_snapshot.c - a snapshot can be used only on what it was made on. */
#include "core/worktree/from_snapshot.h"
#include "base/err.h"
#include "core/state/state.h"
#include "image/image.h"
#include "workspace/workspace.h"
#include <errno.h>
#include <string.h>

void from_snapshot_free(struct from_snapshot *from)
{
    if (!from)
        return;
    snapshot_finish(from->snapshot);
    workspace_free(from->ws);
    free(from);
}

static int take_root(
        const struct snapshot *snapshot, struct carrel_run_options *o, struct carrel_error *err)
{
    const char *image = snapshot->image;

    bool is_other =
            o->image &&
            (!image || (strcmp(o->image, image) != 0 && !image_pin_is_of(image, o->image)));

    if (o->root || is_other)
        return err_set(err, -EINVAL,
                "snapshot '%s' was made on %s%s; it can lie on nothing else", snapshot->name,
                image ? "image " : "the host's root", image ? image : "");
    o->image = image ? image : "none";
    return 0;
}

static int take_workspace(struct from_snapshot *b, const char *state,
        struct carrel_run_options *o, struct carrel_error *err)
{
    const struct snapshot *snapshot = &b->snapshot;

    if (!snapshot->workspace)
        return 0;
    if (o->workspace && (o->workspace->base || o->workspace->resume || o->workspace->fork ||
                                o->workspace->is_dirty || o->workspace->is_folder))
        return err_set(err, -EINVAL,
                "snapshot '%s' has a workspace, a fork of %s; it cannot begin with another",
                snapshot->name, snapshot->workspace);
    int r = workspace_find(state, snapshot->workspace, &b->ws, err);
    if (r < 0)
        return err_wrap(err, r, "snapshot '%s'", snapshot->name);
    b->origin = (struct worktree_origin){
        .ws = b->ws,
        .layers = snapshot->workspace_layers,
    };
    if (!o->workspace)
        o->workspace = &b->workspace;
    return 0;
}

int from_snapshot_find(const char *name, struct carrel_run_options *options,
        struct from_snapshot **out, struct carrel_error *err)
{
    AUTO(from_snapshot_free) struct from_snapshot *b = calloc(1, sizeof(*b));
    char state[PATH_MAX];

    if (!b)
        return err_set_errno(err, -ENOMEM, "snapshot");
    int r = state_path(state, sizeof(state), err);
    if (r == 0)
        r = snapshot_read(state, name, &b->snapshot, err);
    if (r == 0)
        r = take_root(&b->snapshot, options, err);
    if (r == 0)
        r = take_workspace(b, state, options, err);
    if (r < 0)
        return r;
    *out = ptr_steal(&b);
    return 0;
}
