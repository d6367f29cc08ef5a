/*
 * sweep.c - removes entries and layers of sandboxes that died.
 *
 * Entries are taken away in many places, and layers belong to another folder: so the registry
 * remembers that an owner died until the layers were looked through.
 */
#include "core/keeper/sweep.h"
#include "core/worktree/sweep_layers.h"
#include "registry/registry.h"

void keeper_sweep_layers(const struct registry *reg)
{
    if (registry_take_deaths(reg, NULL) > 0)
        sweep_own_layers();
}

int keeper_sweep(const struct registry *reg, struct carrel_error *err)
{
    int r = registry_sweep(reg, err);

    if (r < 0)
        return r;
    keeper_sweep_layers(reg);
    return 0;
}
