/* sweep_layers.c - tells the sweep of the layers which ones workspaces name. */
#include "core/worktree/sweep_layers.h"
#include "base/err.h"
#include "core/state/state.h"
#include "layer/layer.h"
#include "workspace/workspace.h"
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

struct naming {
    struct store_names *names;
    struct carrel_error *err;
};

static int add_workspace(struct workspace **ws, void *context)
{
    const struct naming *naming = context;
    struct layer_list list;

    /* A workspace whose record cannot be read may lie on any of them. */
    int r = (*ws)->repo[0] ? layer_list_parse((*ws)->layers, &list) : -EBADMSG;
    if (r < 0)
        return err_set(naming->err, r, "it is not known on which layers workspace '%s/%s' lies",
                (*ws)->task, (*ws)->run);
    r = layer_names_add(naming->names, &list);
    return r < 0 ? err_set_errno(naming->err, r, "layers") : 0;
}

static int add_workspaces(struct store_names *names, void *state, struct carrel_error *err)
{
    struct naming naming = { .names = names, .err = err };

    return workspace_each(state, NULL, add_workspace, &naming, err);
}

int sweep_layers(const char *state, struct carrel_error *err)
{
    char path[PATH_MAX];

    if (snprintf(path, sizeof(path), "%s/layers", state) < (int)sizeof(path) &&
            access(path, F_OK) < 0 && errno == ENOENT)
        return 0; /* no layer was ever made, and a sweep does not make the directory */
    return layer_sweep(state, add_workspaces, (void *)(uintptr_t)state, err);
}

void sweep_own_layers(void)
{
    char state[PATH_MAX];

    if (state_path(state, sizeof(state), NULL) == 0)
        (void)sweep_layers(state, NULL); /* else by the next cleanup */
}

int discard_with_layers(const char *state, struct workspace *ws, struct carrel_error *err)
{
    bool has_layers = ws->layers != NULL;

    int r = workspace_discard(state, ws, err);
    if (r == 0 && has_layers)
        (void)sweep_layers(state, NULL); /* else `carrel cleanup` does */
    return r;
}
