/* sweep_layers.c - tells the sweep of the layers which ones workspaces name. */
#include "core/worktree/sweep_layers.h"
#include "core/state/state.h"
#include "core/worktree/fork.h"
#include "layer/layer.h"
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

int sweep_layers(const char *state, struct carrel_error *err)
{
    char path[PATH_MAX];

    if (snprintf(path, sizeof(path), "%s/layers", state) < (int)sizeof(path) &&
            access(path, F_OK) < 0 && errno == ENOENT)
        return 0; /* nothing was ever made there, and a sweep makes nothing */
    return layer_sweep(state, restack_names, (void *)(uintptr_t)state, err);
}

void sweep_own_layers(void)
{
    char state[PATH_MAX];

    if (state_path(state, sizeof(state), NULL) == 0)
        (void)sweep_layers(state, NULL); /* else by the next cleanup */
}
